"""What pages of long work share: a form, a job, and the part of the page that tells how it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from hushed._ground.printing import tell_seconds
from hushed._web.rendering import Fields, download
from hushed.errors import HushedError, NotFound
from hushed.workbench._bench import Turn, Workbench
from hushed.workbench._drafts import Draft, Kind
from hushed.workbench._jobs import (
    Job,
    JobState,
    list_jobs,
    new_job,
    start_job,
    stop_job,
)
from hushed.workbench._privates import Private, require_public
from hushed.workbench._views.sources import Defined, list_functions
from hushed.workbench._workspace import list_files

CODE = (".py",)
PUBLIC = (".csv", ".parquet")
FORM = "do."


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What there is to choose from in the folder."""

    tables: list[str]
    functions: list[Defined]
    problems: dict[str, str]
    folder: Path = Path()
    privates: tuple[Private, ...] = ()

    def refuse_private(self, typed: Mapping[str, str]) -> dict[str, str]:
        """Say at its field that a file of public rows is a private one, under whatever name."""
        name, data = typed.get("population_file", ""), typed.get("data", "")
        if typed.get("population", "") not in ("", "file") or name not in self.tables:
            return {}
        own = self.folder / data if data in self.tables else None
        try:
            require_public(self.folder / name, own, self.privates)
        except HushedError as error:
            return {"population_file": error.message}
        return {}


def look_around(bench: Workbench) -> Files:
    """List tables by name and functions by reading files of code; neither is opened or run."""
    code = list(list_files(bench.workspace, CODE))
    functions, problems = list_functions(bench.workspace.folder, code)
    tables = list(list_files(bench.workspace, PUBLIC))
    return Files(
        tables=tables,
        functions=functions,
        problems=problems,
        folder=bench.workspace.folder,
        privates=bench.list_privates(),
    )


_FIELDS = {  # what a page calls an option of a command
    "--column": "the field Column of the public file",
    "--block-rows": "the field Rows in a block",
    "--user": "the field Column that says whose row it is",
    "--workers": "the field Worker processes",
}
_BLOCKS = r"hs\.Blockwise\(.*?\) \(--block-rows (\d+) on the command line\)"
_WORDS = (  # advice in words of the page; what it has no field for is left out
    (_BLOCKS, r"with \1 as Rows in a block"),
    (r"accept a larger gamma", "let the promise fail for 1 in fewer cases"),
    (r", or choose calibration='marginal' \(.*?\), which .*? is a part", ""),
    (r" and calibration='marginal' \(--calibration marginal\)", " under the marginal calibration"),
    (r", or accept the weaker promise of .*? \(--promise [a-z-]+ .*?\)", ""),
)


def name_fields(problem: str) -> str:
    """Name the fields of a page in what a command says of its options."""
    for found, said in _WORDS:
        problem = re.sub(found, said, problem)
    return re.sub(r"--[a-z-]+", lambda option: _FIELDS.get(option[0], option[0]), problem)


ReadForm = tuple[list[str], dict[str, str]]  # of a command, and what is wrong by field
Read = Callable[[Mapping[str, str], list[str], list[Defined]], ReadForm]
Show = Callable[[Workbench, Draft, JobState | None], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One kind of long work.

    Parameters
    ----------
    path : str
        First part of its addresses; the template of its page is called so, too.
    kind : {"function", "audit", "population", "comparison"}
        Kind of its drafts.
    job : str
        Kind of the job that its form becomes.
    title, name, empty : str
        Heading of the list, name of a new draft, what an empty list says.
    words_of : callable
        From what was typed, and the tables and functions there are, to the words of a command, and
        what is wrong by field.
    show : callable
        What the page shows of a job beside how it is.
    """

    path: str
    kind: Kind
    job: str
    title: str
    name: str
    empty: str
    words_of: Read
    show: Show

    def read(self, typed: Mapping[str, str], files: Files) -> ReadForm:
        """Read a form; a private file in place of a public one is refused, whatever the work."""
        words, errors = self.words_of(typed, files.tables, files.functions)
        return words, files.refuse_private(typed) | errors


def home_of(bench: Workbench) -> Path:
    """Name the folder of the jobs."""
    return bench.workspace.hidden / "jobs"


def find_job(bench: Workbench, draft: Draft, kind: str) -> JobState | None:
    """Find the last job of a kind of a draft."""
    found = [each for each in list_jobs(home_of(bench), draft.id) if each.job.kind == kind]
    return found[0] if found else None


def find_draft(bench: Workbench, work: Work, identity: str) -> Draft:
    """Find a draft of this kind."""
    draft = bench.drafts.get(identity)
    if draft.kind != work.kind:
        raise NotFound("there is no such draft here; the history lists those that there are")
    return draft


def show_work(
    bench: Workbench,
    work: Work,
    request: Request,
    draft: Draft,
    errors: Mapping[str, str] | None = None,
) -> Response:
    """Show the form of a draft, and how its job is."""
    state, files = find_job(bench, draft, work.job), look_around(bench)
    typed = draft.part(FORM)
    words, _ = work.read(typed, files)
    found = describe_state(bench, work, draft, state)
    return bench.show(
        request,
        f"page_{work.path}.html",
        422 if errors else 200,
        active=work.path,
        work=work,
        draft=draft,
        typed=typed,
        errors=dict(errors or {}),
        files=files,
        changed=state is not None and list(state.job.words) != words,
        **found,
    )


def describe_state(
    bench: Workbench, work: Work, draft: Draft, state: JobState | None
) -> dict[str, Any]:
    """Describe how a job is, for a page and for the part of it that is asked for each second."""
    if state is not None:
        state = replace(state, problem=name_fields(state.problem))
    time = "" if state is None else tell_seconds(state.seconds)
    return {
        "state": state,
        "time": time,
        "address": f"{bench.root}/{work.path}/{draft.id}",
        **work.show(bench, draft, state),
    }


def make_work_router(bench: Workbench, work: Work) -> APIRouter:
    """Make the routes that every kind of long work has."""
    router = APIRouter()
    add_forms(router, bench, work)
    _add_jobs(router, bench, work)
    return router


def add_forms(router: APIRouter, bench: Workbench, work: Work) -> None:
    """Add the routes of the list and of the form."""
    base = f"/{work.path}"

    @router.get(base)
    def show_list(request: Request) -> Response:
        drafts = bench.drafts.list(work.kind)
        return bench.show(request, "page_works.html", active=work.path, work=work, drafts=drafts)

    @router.post(base + "/new")
    def begin(fields: Fields) -> Response:
        draft = bench.drafts.create(work.kind, fields.get("draft-name", "").strip() or work.name)
        return bench.go(f"/{work.path}/{draft.id}")

    @router.get(base + "/{identity}")
    def show(request: Request, identity: str) -> Response:
        return show_work(bench, work, request, find_draft(bench, work, identity))

    @router.post(base + "/{identity}/draft")
    def save(identity: str, fields: Fields, turn: Turn) -> Response:
        save_form(bench, find_draft(bench, work, identity), fields, turn)
        return Response(status_code=204)


def _add_jobs(router: APIRouter, bench: Workbench, work: Work) -> None:
    base = f"/{work.path}"

    @router.post(base + "/{identity}/run")
    def run(request: Request, identity: str, fields: Fields, turn: Turn) -> Response:
        draft = save_form(bench, find_draft(bench, work, identity), fields, turn)
        words, errors = work.read(draft.part(FORM), look_around(bench))
        if errors:
            return show_work(bench, work, request, draft, errors)
        bench.require_writable()
        start_job(home_of(bench), bench.workspace.folder, _choose_job(bench, work, draft, words))
        return bench.go(f"/{work.path}/{draft.id}#state")

    @router.post(base + "/{identity}/stop")
    def stop(identity: str) -> Response:
        draft = find_draft(bench, work, identity)
        state = find_job(bench, draft, work.job)
        if state is not None:
            stop_job(home_of(bench), state.job.id)
        return bench.go(f"/{work.path}/{draft.id}#state")

    @router.get(base + "/{identity}/state")
    def tell_state(request: Request, identity: str, rows: str = "") -> Response:
        draft = find_draft(bench, work, identity)
        found = describe_state(bench, work, draft, find_job(bench, draft, work.job))
        template = "part_rows.html" if rows else "part_work.html"
        answer = bench.show(request, template, work=work, draft=draft, **found)
        if found["state"] is None or found["state"].status != "running":
            answer.headers["HX-Refresh"] = "true"  # the whole page, with what was found
        return answer

    @router.get(base + "/{identity}/result.json")
    def save_result(identity: str) -> Response:
        state = find_job(bench, find_draft(bench, work, identity), work.job)
        if state is None or state.status != "done":
            raise NotFound("there is no result yet")
        return download(f"{work.job}.json", write_json(state.result), "application/json")


def _choose_job(bench: Workbench, work: Work, draft: Draft, words: list[str]) -> Job:
    """Go on with the last job where it asked the same and was cut short; else begin a new one."""
    known = find_job(bench, draft, work.job)
    if known is None or list(known.job.words) != words or known.status == "failed":
        return new_job(work.job, draft.id, words)
    return known.job


def write_json(found: Mapping[str, Any]) -> str:
    """Write what a command printed, as a file."""
    return json.dumps(dict(found), indent=2, sort_keys=True) + "\n"


def save_form(bench: Workbench, draft: Draft, fields: Mapping[str, str], turn: int) -> Draft:
    """Write down what was typed."""
    name = fields.get("draft-name", "").strip() or draft.name
    typed = {key: text for key, text in fields.items() if key != "draft-name"}
    return bench.drafts.change(draft.id, typed, prefix=FORM, name=name, turn=turn)
