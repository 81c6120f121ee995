"""
From a pod's name to what made the pod, by the ways in which Kubernetes makes names.

    Deployment      catalog-66b6c48dd5-x2k4p     hash of the pod's template, then five random characters
    CronJob         report-29384756-x2k4p        minutes since 1970 (before 1.21 seconds), then five characters
    StatefulSet     db-0                         ordinal
    static pod      kube-proxy-worker-1          the node's name
    DaemonSet, Job, ReplicaSet
                    fluentd-x2k4p                five random characters; an Indexed Job has its index before them

Docs  https://github.com/kubernetes/apimachinery/blob/master/pkg/util/rand/rand.go (the alphabet)
      https://kubernetes.io/docs/concepts/workloads/controllers/

Random characters are of an alphabet without vowels and without 0, 1 and 3, so
that they spell no words. The hash of a template is a number of 32 bits whose
decimal digits are replaced by ten characters of that alphabet.

What a name cannot tell: a DaemonSet, a Job and a bare ReplicaSet look alike;
so do a StatefulSet's pod and one that a person called db-0. A DaemonSet that a
person called app-6b5c88 looks like a Deployment called app. The Kubernetes API
tells all of them apart, and its word is taken first.
"""

import re
from dataclasses import dataclass

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
# The digits 0 to 9 as the server encodes them: ALPHABET[ord(digit) % 27].
HASH_ALPHABET = "456789bcdf"
# One of three: the name alone does not tell which.
UNSURE = "DaemonSet, Job or ReplicaSet"
BARE_POD = "pod"
# A generated name has at most 63 characters: the first 58 of what was wanted, then the five.
CUT_AT, LONGEST = 58, 63
# Schedules from 2014 to 2049. A date written as 20260131 is no such number of minutes.
MINUTES = range(23_140_000, 41_550_000)
SECONDS = range(1_388_534_400, 2_500_000_000)

_RANDOM = f"[{ALPHABET}]{{5}}"
# A number of 32 bits has fewer than six digits once in 43,000 times; a word that looks so is likelier.
_TEMPLATE = re.compile(rf"(.+)-[{HASH_ALPHABET}]{{6,10}}-{_RANDOM}")
_SCHEDULE = re.compile(rf"(.+)-([0-9]{{8}}|[0-9]{{10}})-{_RANDOM}")
# Operators that make names in the same way, each with a hash of its own length. Eight letters without a
# vowel are no word either.
_OTHER_HASH = re.compile(rf"(.+)-(?=[a-z]*[0-9]|[a-z]{{8,10}}-)[{ALPHABET}]{{6,10}}-{_RANDOM}")
_SUFFIX = re.compile(rf"(.+)-{_RANDOM}")
_ORDINAL = re.compile(r"(.+)-(?:0|[1-9][0-9]{0,4})")
_CUT_HASH = re.compile(rf"-[{HASH_ALPHABET}]{{0,10}}$")


@dataclass(frozen=True, slots=True)
class PodOwner:
    """What made a pod: its kind and name."""

    kind: str
    name: str


def read_pod_name(pod: str, node: str = "") -> PodOwner:
    """What made the pod, as far as its name tells; a pod that nothing made is its own."""
    if node and pod.endswith(f"-{node}") and len(pod) > len(node) + 1:
        return PodOwner("static pod", pod.removesuffix(f"-{node}"))
    if match := _TEMPLATE.fullmatch(pod):
        return PodOwner("Deployment", match[1])
    if (match := _SCHEDULE.fullmatch(pod)) and is_schedule(match[2]):
        return PodOwner("CronJob", match[1])
    if match := _OTHER_HASH.fullmatch(pod):
        return PodOwner("Deployment", match[1])
    if match := _SUFFIX.fullmatch(pod):
        return PodOwner(UNSURE, match[1])
    if match := _ORDINAL.fullmatch(pod):
        return PodOwner("StatefulSet", match[1])
    return read_cut_name(pod) if len(pod) == LONGEST else PodOwner(BARE_POD, pod)


def is_schedule(digits: str) -> bool:
    return int(digits) in (MINUTES if len(digits) == 8 else SECONDS)


def read_cut_name(pod: str) -> PodOwner:
    """A name that was too long: its hyphen or the end of its hash was cut off before the random characters."""
    if not re.fullmatch(_RANDOM, pod[CUT_AT:]):
        return PodOwner(BARE_POD, pod)
    kept = pod[:CUT_AT]
    found = _CUT_HASH.search(kept)
    return PodOwner("Deployment", kept[: found.start()]) if found else PodOwner(UNSURE, kept)


def read_job_name(job: str) -> PodOwner:
    """A Job by its own name: a CronJob's where it ends in a schedule."""
    stem, _, digits = job.rpartition("-")
    if stem and len(digits) in (8, 10) and digits.isascii() and digits.isdigit() and is_schedule(digits):
        return PodOwner("CronJob", stem)
    return PodOwner("Job", job)
