"""
README's moving picture: the demo's page, from the first view to the leak that ended in an OOM kill.

    python -m tools.moving_picture [docs/images/viewer.webp]

chromium takes the pictures and encodes each as WebP; an animation is those one after another in
one container (RIFF), which is written here.
"""

import base64
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, expect
from tests.bare.trial import open_browser
from tests.integration.agents import NODESCOPE
from tests.web.browsing import Watched, running_viewer, watching

# A study of four hours, on a busy machine.
PATIENCE_MS = 240_000
TARGET = Path("docs/images/viewer.webp")
WIDE, HIGH = 1280, 800
# The picture is smaller than the page, as a README shows it.
SHRINK = 0.75
QUALITY = 0.6
DEMO = ("--hours", "4", "--containers", "10", "--end", "2026-11-16T08:00:00Z", "--no-serve")
# The page is drawn by chromium, shrunk and encoded by it.
ENCODE = """async ({picture, shrink, quality}) => {
    const image = await createImageBitmap(await (await fetch(picture)).blob());
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.width * shrink, image.height * shrink];
    const pen = canvas.getContext('2d', {alpha: false});
    pen.imageSmoothingQuality = 'high';
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL('image/webp', quality);
}"""


@dataclass
class Film:
    """Pictures of a page with the time that each is shown."""

    page: Page
    encoder: Page
    frames: list[tuple[bytes, int]] = field(default_factory=list)

    def take(self, milliseconds: int) -> None:
        picture = base64.b64encode(self.page.screenshot(animations="disabled")).decode()
        told = self.encoder.evaluate(
            ENCODE, {"picture": f"data:image/png;base64,{picture}", "shrink": SHRINK, "quality": QUALITY}
        )
        self.frames.append((base64.b64decode(str(told).partition(",")[2]), milliseconds))


def list_chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and content of each part of a WebP file."""
    if picture[:4] != b"RIFF" or picture[8:12] != b"WEBP":
        raise ValueError("not a WebP picture")
    place = 12
    while place < len(picture):
        name, size = struct.unpack_from("<4sI", picture, place)
        yield name, picture[place + 8 : place + 8 + size]
        place += 8 + size + size % 2


def pack_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack("<4sI", name, len(content)) + content + b"\0" * (len(content) % 2)


def pack_number(value: int) -> bytes:
    """Three bytes, as sizes and times are written."""
    return value.to_bytes(3, "little")


def join_pictures(frames: list[tuple[bytes, int]], wide: int, high: int) -> bytes:
    """One animation that repeats without end."""
    size = pack_number(wide - 1) + pack_number(high - 1)
    body = pack_chunk(b"VP8X", b"\x02\0\0\0" + size) + pack_chunk(b"ANIM", b"\xff\xff\xff\xff\0\0")
    for picture, milliseconds in frames:
        inside = b"".join(
            pack_chunk(name, content)
            for name, content in list_chunks(picture)
            if name in {b"VP8 ", b"VP8L", b"ALPH"}
        )
        # Each replaces the one before as a whole.
        body += pack_chunk(b"ANMF", b"\0" * 6 + size + pack_number(milliseconds) + b"\x02" + inside)
    return struct.pack("<4sI4s", b"RIFF", len(body) + 4, b"WEBP") + body


def play(view: Watched, encoder: Page) -> list[tuple[bytes, int]]:
    """What somebody does who wants to know what happened on this node."""
    page = view.open("range=1h")
    film = Film(page, encoder)
    page.get_by_label("time range").select_option(label="all")
    view.await_window("to - from > 3.5 * 3600")
    expect(page.locator(".findings-opener.has")).to_be_visible(timeout=PATIENCE_MS)
    film.take(2500)
    row = page.locator(".row", has=page.get_by_text("cache", exact=True)).first
    row.hover()
    film.take(700)
    row.click()
    expect(page.locator(".panel").nth(1).locator(".line")).to_have_count(1)
    film.take(2000)
    zoom(view, film)
    page.keyboard.press("2")
    page.keyboard.press("s")
    page.locator(".study", has_text="trend").first.click()
    finding = page.locator(".finding", has_text="leak").first
    expect(finding).to_be_visible(timeout=PATIENCE_MS)
    film.take(3500)
    finding.click()
    film.take(2500)
    page.keyboard.press("e")
    expect(page.locator("dialog.sheet[open]")).to_be_visible()
    film.take(2000)
    return film.frames


def zoom(view: Watched, film: Film) -> None:
    """Into the hours before the kill, by a drag over the memory's panel."""
    box, mouse = view.plot(1), view.page.mouse
    high = box["y"] + box["height"] / 2
    mouse.move(box["x"] + 2, high)
    mouse.down()
    for share in (0.2, 0.45, 0.69):
        mouse.move(box["x"] + box["width"] * share, high)
        film.take(350)
    mouse.up()
    view.await_window("to - from < 3.2 * 3600")
    view.page.mouse.move(0, 0)
    view.await_panels()
    film.take(1500)


def film_page(browser: Browser, address: str) -> bytes:
    with watching(browser, address, viewport={"width": WIDE, "height": HIGH}, color_scheme="light") as view:
        frames = play(view, browser.new_page())
    return join_pictures(frames, int(WIDE * SHRINK), int(HIGH * SHRINK))


def main(words: list[str]) -> int:
    target = Path(words[0]) if words else TARGET
    with TemporaryDirectory() as name, open_browser() as browser:
        folder = Path(name)
        demo = [*NODESCOPE, "demo", "--data", str(folder / "demo"), *DEMO]
        subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
        with running_viewer(folder / "demo", folder / "output") as viewer:
            film = film_page(browser, viewer.url)
    target.write_bytes(film)
    print(f"{target}: {len(film) / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
