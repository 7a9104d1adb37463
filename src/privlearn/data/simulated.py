"""Version 0.1's place of made-up rows."""

from privlearn.data.datasets import census_schema as census_schema
from privlearn.data.datasets import simulated_census as simulated_census
from privlearn.moved import say_moved

say_moved("privlearn.data.simulated", "privlearn.data.datasets")
