"""Version 0.1's place of a search's certificate."""

from privlearn.moved import say_moved
from privlearn.release.certificate import SearchCertificate as SearchCertificate

say_moved("privlearn.release.search_certificate", "privlearn.release.certificate")
