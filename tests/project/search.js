// Asks the search of a built site, as its pages do: node search.js SITE QUERY prints what is found, the best first.
const fs=require('fs'),vm=require('vm');
const [site,query]=process.argv.slice(2);
const dir=site+'/assets/javascripts/workers/';
const file=dir+fs.readdirSync(dir).find(f=>/^search.*\.js$/.test(f));
const index=JSON.parse(fs.readFileSync(site+'/search/search_index.json'));
const h=[];
const ctx={console,URL,addEventListener:(t,f)=>h.push(f),postMessage:m=>{
 if(m.type===1)h.forEach(f=>f({data:{type:2,data:query}}));
 if(m.type===3)console.log(JSON.stringify(m.data.items.map(g=>g[0].location)));}};
ctx.self=ctx;
vm.createContext(ctx);vm.runInContext(fs.readFileSync(file,'utf8'),ctx);
h.forEach(f=>f({data:{type:0,data:{config:index.config,docs:index.docs,options:{suggest:false}}}}));
