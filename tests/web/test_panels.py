"""Search, twelve panels and no thirteenth, containers chosen from the list."""

import pytest
from playwright.sync_api import expect
from tests.web.browsing import Watched

pytestmark = pytest.mark.real


def test_search_adds_a_metric_and_chooses_a_container(view: Watched) -> None:
    page = view.open("panels=cpu")
    page.keyboard.press("/")
    page.keyboard.type("throttl")
    expect(page.locator(".hits li.at")).to_contain_text("cpu_throttled")
    page.keyboard.press("Enter")
    view.await_panels(2)
    assert view.words()["panels"] == "cpu,cpu_throttled"

    page.locator("#search").fill("encodr")
    expect(page.locator(".hits li.at .name")).to_contain_text("encoder")
    page.keyboard.press("Enter")
    expect(page.locator(".panel").nth(0).locator(".line")).to_have_count(1)
    expect(page.locator(".panel").nth(1).locator(".line .name")).to_have_text(["encoder"])
    assert len(view.words()["containers"]) == 12


def test_the_list_filters_fuzzily_and_by_namespace(view: Watched) -> None:
    page = view.open("panels=cpu")
    expect(page.locator(".row").first).to_be_visible()
    before = page.locator(".row").count()
    page.locator("#filter").fill("rprtcron")
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".row .name")).to_have_text(["report-cron"])
    page.locator("#filter").fill("there is no such container")
    expect(page.locator(".side .state")).to_contain_text("No container matches")
    page.locator(".side").get_by_role("button", name="clear the filters").click()
    expect(page.locator(".row")).to_have_count(before)
    page.get_by_label("namespace").select_option("media")
    expect(page.locator(".row .name")).to_have_text(["encoder"])
    assert view.words()["namespace"] == "media"


def test_twelve_panels_and_a_thirteenth_is_refused_with_the_reason(view: Watched) -> None:
    eleven = (
        "cpu,memory,pressure_cpu,pressure_memory,disk_write,cpu_throttled,memory_anon,memory_working_set,"
        "cpu_user,cpu_system,memory_limit"
    )
    page = view.open(f"panels={eleven}")
    page.keyboard.press("a")
    page.locator("#picker").fill("threads")
    page.keyboard.press("Enter")
    view.await_panels(12)
    page.keyboard.press("a")
    page.locator("#picker").fill("memory_file")
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_contain_text("Twelve panels are the most")
    expect(page.locator(".panel")).to_have_count(12)
    page.keyboard.press("x")
    expect(page.locator(".panel")).to_have_count(11)


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844), (320, 640)])
def test_the_metric_picker_has_room(view: Watched, width: int, height: int) -> None:
    """As wide as its sheet, several metrics at once, their names whole."""
    page = view.page
    page.set_viewport_size({"width": width, "height": height})
    view.open("panels=cpu")
    page.keyboard.press("a")
    hits = page.locator(".sheet .hits")
    expect(hits.locator("li").nth(5)).to_be_visible()
    sheet, field, listed = (page.locator(one).bounding_box() for one in (".sheet", "#picker", ".sheet .hits"))
    assert sheet
    assert field
    assert listed
    assert field["width"] > 0.85 * sheet["width"]
    assert listed["width"] > 0.85 * sheet["width"]
    assert listed["height"] > 0.3 * height
    cut = hits.locator(".name").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
    )
    assert cut == 0, f"{cut} names are cut off"


def test_the_legend_follows_the_cursor_in_every_panel(view: Watched) -> None:
    page = view.open("range=all&panels=cpu,memory")
    box = view.plot(0)
    orders = set()
    for share in (0.1, 0.4, 0.6, 0.95):
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + 40)
        page.wait_for_function(
            """([share, width]) => [...document.querySelectorAll('.u-cursor-x')]
                .every(one => Math.abs(new DOMMatrix(getComputedStyle(one).transform).e - share * width) < 2)""",
            arg=[share, box["width"]],
        )
        expect(page.locator(".readout")).to_contain_text(":")
        orders.add(tuple(page.locator(".panel").first.locator(".line .name").all_inner_texts()))
    assert len(orders) > 1, "the order under the cursor never changed"


def test_a_click_on_a_name_shows_it_alone(view: Watched) -> None:
    page = view.open("panels=memory")
    everything = view.pixels()
    page.locator(".line", has_text="catalog").or_(page.locator(".line")).first.click()
    expect(page.locator(".line.off")).to_have_count(7)
    assert view.pixels() != everything
    page.keyboard.press("Escape")
    expect(page.locator(".line.off")).to_have_count(0)


def test_a_dashboard_is_a_view(view: Watched) -> None:
    board = (
        '{"schema_version":1,"name":"x","panels":[{"metric":"memory","title":"what ${TEAM} holds"}],'
        '"time_range":{"range":"all"},"containers":{"namespace":"shop"}}'
    )
    page = view.open(f"dashboard={board}&team=shop")
    expect(page.locator(".panel h2")).to_contain_text("what shop holds")
    assert view.words()["namespace"] == "shop"


def test_a_dashboard_of_another_origin_is_refused(view: Watched) -> None:
    page = view.open("dashboard=https://elsewhere.example/x.json")
    expect(page.locator(".notice")).to_contain_text("is not this page's origin")
    assert not view.foreign


def test_an_earlier_line_is_drawn_and_told_as_a_difference(view: Watched) -> None:
    """Ten minutes before: the legend says how much more or less it is now, from the archive's own numbers."""
    page = view.open("panels=memory&range=10m")
    without = view.pixels()
    page.evaluate("() => { location.hash = `${location.hash}&compare=10m`; }")
    change = page.locator(".line .value .faint")
    expect(change.first).to_be_visible()
    # The legend may be told a moment before the line is drawn.
    page.wait_for_function(
        "before => document.querySelector('.chart canvas').toDataURL() !== before", arg=without
    )
    assert view.words()["compare"] == "10m"
    line = page.locator(".line", has=page.get_by_text("cache", exact=True)).first
    told = line.locator(".value").inner_text()
    now, before = page.evaluate(
        """async () => {
            const ask = async back => {
                const chart = document.querySelector('.chart');
                const [from, to] = [chart.dataset.from, chart.dataset.to].map(one => Number(one) - back);
                const answer = await (await fetch(`/api/timeseries?metric=memory&lives=joined&from=${from}&to=${to}&containers=cache`)).json();
                return answer.series[0].mean.filter(one => one !== null).at(-1);
            };
            return [await ask(0), await ask(600)];
        }"""
    )
    percent = (now / before - 1) * 100
    shown = "±0 %" if abs(percent) < 0.5 else f"{percent:+.2g} %"
    assert told.startswith(shown.replace("e+02", "00")), (told, shown)
