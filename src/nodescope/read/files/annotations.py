"""Annotations of data folders, for readers; a file that has not changed is not read again."""

from dataclasses import dataclass, field
from pathlib import Path

from nodescope.base.findings.annotation import Annotation
from nodescope.keep.annotation_file import FILE_NAME, add_annotation, read_annotations

__all__ = ["AnnotationFiles", "add_annotation"]


@dataclass(slots=True)
class AnnotationFiles:
    _known: dict[Path, tuple[tuple[int, int], tuple[Annotation, ...]]] = field(default_factory=dict)

    def read(self, folder: Path) -> tuple[Annotation, ...]:
        try:
            about = (folder / FILE_NAME).stat()
        except OSError:
            return ()
        stamp = (about.st_mtime_ns, about.st_size)
        known = self._known.get(folder)
        if known is None or known[0] != stamp:
            known = self._known[folder] = (stamp, tuple(read_annotations(folder)))
        return known[1]
