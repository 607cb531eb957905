"""What every part needs: numbers that land on a stated side, validators, types, and words."""
