"""Cells that no error message may show."""

CANARY_NUMBER = 7364518209
CANARY_TEXT = "Xylophon-Quirk"
CANARIES = (str(CANARY_NUMBER), "7.364518", "7,364", CANARY_TEXT)
