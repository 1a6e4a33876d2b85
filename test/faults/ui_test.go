//go:build e2e

package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/podstead/podstead/test/internal/browser"
)

// uiPods are the pods that the page shows.
var uiPods = map[string]string{
	"web": noGrace + container("app", "i=0; while :; do i=$((i+1)); echo \"request $i <b>bold</b>\"; sleep 0.3; done") +
		probe("true") + container("side", "while :; do echo side >&2; sleep 1; done"),
	"crash":  noGrace + container("crasher", "echo starting; echo '<img src=x onerror=alert(1)>'; sleep 0.2; exit 3"),
	"probed": noGrace + container("slow", "while :; do sleep 1; done") + probe("echo not yet; exit 1"),
	"job":    "restartPolicy = \"Never\"\n" + container("once", "seq 30; echo done"),
}

const noGrace = "terminationGracePeriodSeconds = 0\n"

// probe is a readiness probe that runs a script each second.
func probe(script string) string {
	return fmt.Sprintf("readinessProbe = { exec = { command = [\"sh\", \"-c\", %q] }, periodSeconds = 1 }\n", script)
}

// ui starts podstead ui in a network and returns its URL.
func (f *fixture) ui(network *browser.Network, args ...string) string {
	f.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context())) // the test takes longer than a command may
	cmd := f.Command(ctx, append([]string{"ui"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	f.Check(err)
	f.Check(network.Do(cmd.Start))
	f.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	f.Check(err)
	return strings.TrimSpace(line)
}

// TestPage drives the page of podstead ui in a browser.
func TestPage(t *testing.T) {
	f := newFixture(t)
	f.MustRun("get")
	for name, text := range uiPods {
		f.MustCreate(name, text)
	}
	network := browser.NewNetwork(t)
	address, err := url.Parse(f.ui(network))
	f.Check(err)
	site := "http://" + address.Host
	profile := t.TempDir()
	b := browser.New(t, network, profile, "--host-resolver-rules=MAP "+rebound+" 127.0.0.1")
	p := b.Open(address.String())
	axe := f.axe()
	picture := func(name string) {
		p.Picture(filepath.Join(f.Repository, ".cache", "ui", name+".png"))
		checkAccess(t, p, axe, name)
	}
	p.Size(1280, 900, "light")

	row := func(name string) string {
		return fmt.Sprintf("document.querySelector(`input[value=%s]`)?.closest('tr')", name)
	}
	// The pods that need a person come first.
	p.Await(row("crash") + "?.innerText.includes('CrashLoopBackOff')")
	p.Await(row("web") + "?.innerText.includes('2/2')")
	p.Await(row("job") + "?.innerText.includes('Completed')")
	p.Await("document.getElementById('connection').innerText.includes('Live')")
	p.Await("[...document.querySelectorAll('tbody a')].map((a) => a.textContent).join() === 'crash,probed,web,job'")
	p.Await(row("web") + "?.innerText.includes('iB')")
	p.Await("!location.href.includes('token')")
	picture("pods-light")
	// The list is live.
	f.MustRun("stop", "web")
	p.Await(row("web") + "?.innerText.includes('Stopped')")
	f.MustRun("start", "web")
	p.Await(row("web") + "?.innerText.includes('2/2')")

	// The keyboard opens the first pod.
	p.Key("j")
	p.Await("document.activeElement.textContent === 'crash'")
	p.Await("(document.activeElement.click(), location.hash === '#/pod/crash')")
	p.Await("document.activeElement.tagName === 'H1'")
	p.Await("document.querySelector('.headline')?.innerText.includes('exited with code 3')")
	p.Await("document.querySelector('.exit pre')?.innerText.includes('<img src=x onerror=alert(1)>')")
	p.Await("document.querySelectorAll('.chain li').length > 1")
	// The page remembers what the pod uses.
	p.Await("document.querySelectorAll('.plot figcaption')[1]?.innerText.startsWith('Memory: ')")
	// A click on a bar shows its events.
	p.Await("document.querySelector('.timeline path[data-lane=crasher]')")
	p.Await(`(document.querySelector('.timeline path[data-lane=crasher][fill="url(#failed)"], .timeline path.n-failed')` +
		`.dispatchEvent(new MouseEvent('click', { bubbles: true })), document.querySelector('.chosen .chain')?.innerText.includes('exit'))`)
	p.Await("document.querySelector('.timeline .selected')")
	p.Await("document.querySelector('.nearby pre')?.innerText.includes('<img src=x onerror=alert(1)>')") // the log lines around it
	// It stays selected in the next picture.
	p.Await("(window.before = document.querySelector('.timeline svg')) && (window.range = document.querySelector('select'))")
	p.Await("(range.value = '24h', range.dispatchEvent(new Event('change')))")
	p.Await("document.querySelector('.timeline svg') !== before && document.querySelector('.timeline .selected')")
	zoom(p)
	p.Size(1280, 1700, "light")
	picture("pod-light")
	p.Key("0")
	p.Size(1280, 1700, "dark")
	picture("pod-dark")
	p.Size(390, 844, "light")
	picture("pod-phone")
	p.Size(1280, 1700, "light")
	p.Go(site + "/#/pod/web")
	p.Await("document.querySelectorAll('.plot figcaption')[0]?.innerText.match(/^CPU: [0-9]+m now/)")
	p.Await("document.querySelectorAll('.plot .line')[1].getAttribute('d').split('L').length > 3")
	p.Await("document.querySelector('.strip')?.ariaLabel.match(/: [0-9]+ Success, latency [0-9.]+ ms to [0-9.]+ m?s$/)")
	p.Await("/Success at [0-9:]+, took [0-9.]+ m?s/.test(document.querySelector('.containers').innerText)")
	p.Await("document.querySelectorAll('.strip i').length > 1 || (document.dispatchEvent(new Event('visibilitychange')), false)")
	p.Await("document.querySelectorAll('.plot .line')[1].getAttribute('d').split('L').length > 3") // also after that
	p.Await("!/NaN|undefined/.test(document.body.innerText)")
	picture("web-light")
	p.Size(390, 844, "dark")
	p.Await("document.querySelector('.plot').scrollIntoView() ?? true")
	picture("web-phone")
	p.Size(390, 844, "light")
	p.Go(site + "/#/")
	p.Await(row("crash"))
	picture("pods-phone")
	p.Size(1280, 900, "dark")
	picture("pods-dark")

	// Logs of two pods, merged, followed and filtered.
	p.Go(site + "/#/logs?pod=web&pod=job")
	p.Await("document.querySelectorAll('.log > div').length > 30")
	p.Await("(window.seen = document.querySelectorAll('.log > div').length) > 0")
	p.Await("document.querySelectorAll('.log > div').length > window.seen + 3")
	p.Await("[...document.querySelectorAll('.log time')].map((e) => Date.parse(e.dateTime)).every((t, i, all) => !i || all[i - 1] <= t)")
	p.Await("document.querySelector('.log').innerText.includes('<b>bold</b>') && !document.querySelector('.log b')")
	picture("logs-dark")
	p.Size(1280, 900, "light")
	picture("logs-light")
	p.Key("/")
	for _, key := range "done" {
		p.Key(string(key))
	}
	p.Await("[...document.querySelectorAll('.log > div:not([hidden])')].map((e) => e.querySelector('.text').innerText).join() === 'done'")

	searchPast(p, site, picture)
	pageOrder(p)

	p.Go(site + "/#/host")
	p.Await("document.querySelectorAll('meter').length === 2 && document.querySelector('main').innerText.includes('Image layers')")
	picture("host-light")

	// After the daemon was killed, the page reconnects.
	p.Go(site + "/#/logs?pod=web")
	p.Await("document.querySelectorAll('.log > div').length > 3")
	problems := p.Problems()
	links(p, site)
	enterAgain(p, address.String())
	problems = append(problems, slices.DeleteFunc(p.Problems(), func(problem string) bool { // the browser reports refused requests
		return strings.Contains(problem, "x%3Bcurl") || strings.Contains(problem, "401 (Unauthorized)")
	})...)
	p.Go(site + "/#/logs?pod=web")
	p.Await("document.querySelectorAll('.log > div').length > 3")
	f.MustKillDaemon()
	p.Await("document.getElementById('connection').innerText.includes('unavailable')")
	picture("lost-light")
	f.MustRun("get")
	p.Await("document.getElementById('connection').innerText.includes('Live')")
	p.Await("(window.seen = document.querySelectorAll('.log > div').length) > 0")
	p.Await("document.querySelectorAll('.log > div').length > window.seen + 3")
	problems = append(problems, p.Problems()...)
	if len(problems) > 0 {
		t.Errorf("the console has %q", problems)
	}
	for _, request := range p.Requests() {
		if !strings.HasPrefix(request, site+"/") && request != "about:blank" {
			t.Errorf("the page has requested %s", request)
		}
	}
	p.Await(`fetch("/api/alive", {headers: {"Podstead-Key": localStorage.getItem("podstead-key")}}).then((r) => r.ok)`)
	p.Await("!document.querySelector('.actions button')")
	f.change(t, network, b, axe)
	// The read-only socket has all but the disk usage.
	reading := b.Open(f.ui(network, "--socket", filepath.Join(f.RunDir(), "podstead-ro.sock")))
	reading.Await(row("web") + "?.innerText.includes('iB')")
	reading.Go(reading.URL("/#/pod/crash"))
	reading.Await("document.querySelector('.exit pre')?.innerText.includes('starting')")
	reading.Go(reading.URL("/#/logs?pod=web"))
	reading.Await("document.querySelectorAll('.log > div').length > 3")
	reading.Go(reading.URL("/#/host"))
	reading.Await("document.querySelectorAll('meter').length === 1 && document.body.innerText.includes('read-only socket')")
	for name := range uiPods {
		f.MustRun("delete", name, "--force")
	}
}

// zoom zooms the timeline with fingers, the wheel and keys, and leaves it zoomed.
func zoom(p *browser.Page) {
	const length = "(([svg]) => svg.dataset.end - svg.dataset.begin)(document.querySelectorAll('.timeline svg'))"
	const select24 = "(([range]) => (range.value = '24h', range.dispatchEvent(new Event('change'))))(document.querySelectorAll('select'))"
	shorter := func() {
		p.Await(length + " < .8 * window.whole")
		p.Await("document.querySelector('.timeline .selected')")
		p.Await("(([all]) => (all.click(), true))(document.querySelectorAll('[aria-label=\"Show all of the timeline\"]'))")
		p.Await(length + " >= window.whole")
	}
	p.Await(select24)
	p.Await("(window.whole = " + length + ") > 0")
	p.Await("(document.querySelector('.timeline .selected').scrollIntoView({ block: 'center' }), true)")
	var at struct{ X, Y float64 }
	p.Value("(({ left, top, width, height }) => ({ x: left + width / 2, y: top + height / 2 }))"+
		"(document.querySelector('.timeline .selected').getBoundingClientRect())", &at)
	points := func(distance float64) []map[string]float64 {
		return []map[string]float64{{"x": at.X - distance, "y": at.Y}, {"x": at.X + distance, "y": at.Y}}
	}
	p.Call("Input.dispatchTouchEvent", map[string]any{"type": "touchStart", "touchPoints": points(40)})
	p.Call("Input.dispatchTouchEvent", map[string]any{"type": "touchMove", "touchPoints": points(80)})
	p.Await("document.querySelector('.timeline svg').style.transform.startsWith('matrix')") // until the next picture
	p.Call("Input.dispatchTouchEvent", map[string]any{"type": "touchEnd", "touchPoints": []string{}})
	shorter()
	wheel := map[string]any{"type": "mouseWheel", "x": at.X, "y": at.Y, "deltaX": 0, "deltaY": -200}
	p.Await("(document.activeElement.blur(), window.scroll = scrollY, true)")
	p.Call("Input.dispatchMouseEvent", wheel) // without the focus, it scrolls the page
	p.Await("scrollY < window.scroll && " + length + " >= window.whole")
	p.Await("(scrollTo(0, window.scroll), scrollY === window.scroll)")
	p.Await("(document.querySelector('.timeline').focus({ preventScroll: true }), document.activeElement.className === 'timeline')")
	p.Call("Input.dispatchMouseEvent", wheel)
	p.Await("scrollY === window.scroll")
	shorter()
	p.Await("(document.querySelector('.timeline').focus(), document.activeElement.className === 'timeline')")
	p.Key("+")
	p.Key("+")
	shorter()
	p.Await("(document.querySelector('.timeline').focus(), document.activeElement.className === 'timeline')")
	p.Key("+")
	p.Await(length + " < .8 * window.whole")
	p.Await("(window.begin = document.querySelector('.timeline svg').dataset.begin) > 0")
	p.Call("Input.dispatchKeyEvent", map[string]any{"type": "rawKeyDown", "key": "ArrowRight", "modifiers": 8}) // with Shift
	p.Await("document.querySelector('.timeline svg').dataset.begin > window.begin")
	p.Key("-")
	p.Await(length + " >= window.whole")
	p.Key("+")
	p.Await(length + " < .8 * window.whole")
}

// searchPast searches in the logs of all runs, and returns to the new lines.
func searchPast(p *browser.Page, site string, picture func(string)) {
	p.Go(site + "/#/logs?pod=web")
	p.Await("document.querySelector('.log')?.innerText.includes('request')")
	p.Key("/")
	for _, key := range "REQUEST 1 <" {
		p.Key(string(key))
	}
	p.Key("Enter")
	// The pod was stopped and started: both runs have the line.
	p.Await("document.querySelector('.bar .note').innerText === '2 lines with “REQUEST 1 <”'")
	p.Await("[...document.querySelectorAll('.log .text')].map((e) => e.innerText).join() === 'request 1 <b>bold</b>,request 1 <b>bold</b>'")
	p.Await("document.querySelector('.command code').innerText === \"podstead logs web --grep 'REQUEST 1 <'\"")
	picture("search-light")
	p.Await("[...document.querySelectorAll('.logs button')].find((e) => e.innerText === 'Show new lines').click() ?? true")
	p.Await("(([filter]) => { filter.value = ''; filter.dispatchEvent(new Event('input')); return true; })" +
		"(document.querySelectorAll('input[type=search]'))")
	p.Await("document.querySelectorAll('.log > div:not([hidden])').length > 10")
}

// pageOrder checks rules of the page with its own modules and answers of the test: lines that were written after the clock was set back
// come last, a search that was aborted because the page was hidden is repeated, and the samples of plots are seconds apart.
func pageOrder(p *browser.Page) {
	p.Await(`import("/plot.js").then(({ remember }) => {
		const samples = new Map(), now = Date.now;
		let time = now();
		Date.now = () => time;
		for (let i = 0; i < 100; i++, time += 1000) remember(samples, [{ uid: "u", memory: 1 }]);
		Date.now = now;
		return samples.get("u").length === 25;
	})`)
	p.Await(`import("/logs.js").then(({ logsView }) => {
		const line = (container, time, text) => ({ pod: "web", container, stream: "stdout", time: "2026-01-01T" + time + "Z", text });
		const batches = [
			[line("a", "12:00:00", "1"), line("b", "12:00:01", "2")],
			[line("a", "12:00:00.5", "1.5")], // late
			[line("b", "11:00:00", "3")], // the clock was set back
			[line("a", "11:00:01", "4"), line("b", "11:00:02", "5")],
		];
		const text = batches.map((lines) => JSON.stringify({ lines }) + "\n").join("") + '{"ended": true}\n';
		const original = window.fetch;
		window.fetch = async () => new Response(text);
		window.view = logsView(["web"]);
		view.start(new AbortController().signal);
		window.fetch = original;
		return true;
	})`)
	p.Await(`[...view.element.querySelectorAll(".log .text")].map((e) => e.textContent).join() === "1,1.5,2,3,4,5"`)
	p.Await(`import("/logs.js").then(({ logsView }) => {
		const original = window.fetch;
		window.searches = 0;
		window.fetch = (path, { signal }) => {
			if (!path.startsWith("/api/search")) return new Promise(() => {});
			if (new URLSearchParams(path.split("?")[1]).get("text") === "found" && ++searches === 2)
				return Promise.resolve(new Response('{"lines": [], "count": 7, "notes": []}'));
			return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
		};
		window.view = logsView(["web"]);
		const hidden = new AbortController(), filter = view.element.querySelector("input[type=search]");
		view.start(hidden.signal);
		filter.value = "found";
		filter.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
		hidden.abort();
		view.start(new AbortController().signal);
		window.fetch = original;
		return true;
	})`)
	p.Await(`searches === 2 && view.element.querySelector(".note").textContent.includes("7 older ones")`)
}

// change stops, starts and restarts a pod in a page that may do so, and attacks that page.
func (f *fixture) change(t *testing.T, network *browser.Network, b *browser.Browser, axe string) {
	address, err := url.Parse(f.ui(network, "--allow-actions"))
	f.Check(err)
	p := b.Open(address.String())
	p.Size(1280, 900, "light")
	p.Await("document.querySelector('tbody a') && !location.href.includes('token')")
	p.Go(p.URL("/#/pod/web"))
	button := func(place, text string) string {
		return fmt.Sprintf("[...document.querySelectorAll('%s button')].find((e) => e.innerText === '%s')", place, text)
	}
	ask := func(text string) {
		p.Await(button(".actions", text))
		p.Await("(([b]) => (b.focus(), document.activeElement === b))([" + button(".actions", text) + "])")
		p.Key("Enter")
		p.Await("document.querySelector('dialog')?.open && document.activeElement.innerText === 'Cancel'")
	}
	// Without a confirmation, nothing happens.
	ask("Stop")
	p.Await("document.querySelector('dialog code').innerText === 'podstead stop web'")
	p.Picture(filepath.Join(f.Repository, ".cache", "ui", "action-light.png"))
	checkAccess(t, p, axe, "action")
	p.Key("1") // keys of the page behind it do nothing
	p.Key("Escape")
	p.Await("!document.querySelector('dialog') && location.hash === '#/pod/web' && document.activeElement.innerText === 'Stop'")
	for _, action := range []struct{ name, command, state string }{
		{"Stop", "stopping", "Stopped"}, {"Start", "starting", "Ready"}, {"Restart", "restarting", "Ready"},
	} {
		ask(action.name)
		p.Await("(" + button("dialog", action.name) + ".click(), true)")
		p.Await("!document.querySelector('dialog')")
		p.Await("document.querySelector('main [role=status]').innerText === 'Pod web is " + action.command + ".'")
		p.Await("document.querySelector('h1 .pill').innerText === '" + action.state + "'")
	}
	// An error is shown, and the dialog stays.
	ask("Restart")
	f.MustRun("delete", "web", "--force")
	p.Await("(" + button("dialog", "Restart") + ".click(), true)")
	p.Await("document.querySelector('dialog [role=alert]').innerText.includes('no such pod')")
	p.Key("Escape")
	p.Await("!document.querySelector('dialog')")
	f.MustCreate("web", uiPods["web"])
	p.Await("document.querySelector('.actions button')")
	var pod struct{ Name, UID string }
	p.Value("fetch('/api/pod?name=web', {headers: {'Podstead-Key': localStorage.getItem('podstead-key')}}).then((r) => r.json())"+
		".then(({ pod, uid }) => ({ name: pod, uid }))", &pod)
	body := fmt.Sprintf(`{"name": %q, "uid": %q}`, pod.Name, pod.UID)
	requests := func() int { return strings.Count(f.MustRun("events", "web"), "requested by podstead ui") }
	before := requests()
	if before < 3 {
		t.Errorf("the events have %d requests of the page", before)
	}
	attack(t, network, b, address.Host, body)
	rebind(t, b, address.Host, strings.TrimPrefix(address.Fragment, "token="))
	if after := requests(); after != before {
		t.Errorf("other pages have changed the pod: %d requests, want %d", after, before)
	}
	p.Close()
}

// links opens addresses of no view and of no pod, and a view whose sections do not change.
func links(p *browser.Page, site string) {
	p.Go(site + "/#/pod/x%3Bcurl")
	p.Await("document.querySelector('main').innerText.includes('no such pod')")
	p.Await("!document.querySelector('.command')")
	p.Go(site + "/#/logs?pod=x%3Bcurl")
	p.Await("document.querySelector('.log')?.innerText.includes('no such pod') && !document.querySelector('.command')")
	p.Go(site + "/#/pod/%")
	p.Await("document.querySelector('h1').innerText === 'Pods' && document.querySelector('tbody a')")
	p.Go(site + "/#main")
	p.Await("document.activeElement.id === 'main'")
	p.Call("Page.reload", nil)
	p.Await("location.hash === '#main' && document.querySelector('h1')?.innerText === 'Pods' && document.querySelector('tbody a')")

	p.Go(site + "/#/pod/job")
	p.Await("window.log = document.querySelector('.exit pre')")
	p.Await("performance.clearResourceTimings() ?? true")
	p.Await("performance.getEntriesByType('resource').some((e) => e.name.includes('/api/timeline'))") // after the section
	p.Await("log.isConnected")
}

// enterAgain closes the page and opens it again: with the key of before, and with the URL in the same tab.
func enterAgain(p *browser.Page, address string) {
	p.Await("(window.key = localStorage.getItem('podstead-key')) && (localStorage.clear(), true)")
	p.Await("document.dispatchEvent(new Event('visibilitychange'))")
	p.Await("document.querySelector('h1').innerText === 'This page is closed'")
	p.Await("(localStorage.setItem('podstead-key', key), true)")
	p.Await("document.dispatchEvent(new Event('visibilitychange'))")
	p.Await("document.querySelector('h1').innerText.startsWith('job')")
	p.Await("(localStorage.clear(), document.dispatchEvent(new Event('visibilitychange')))")
	p.Await("document.querySelector('h1').innerText === 'This page is closed'")
	p.Go(address)
	p.Await("!window.key && !location.href.includes('token') && document.querySelector('tbody a')")
	p.Go(address + "x")
	p.Await("document.getElementById('problem')?.innerText.includes('wrong token') && document.querySelector('tbody a')")
}

// axe returns the script of axe-core; empty: .ci/deps could not install it.
func (f *fixture) axe() string {
	f.Helper()
	text, err := os.ReadFile(filepath.Join(f.Repository, ".cache", "axe", "axe.min.js"))
	if errors.Is(err, fs.ErrNotExist) {
		f.Log("accessibility is not checked: axe-core is not installed")
		return ""
	}
	f.Check(err)
	return string(text)
}

// checkAccess checks the accessibility of a view.
func checkAccess(t *testing.T, p *browser.Page, axe, view string) {
	t.Helper()
	if axe == "" {
		return
	}
	const run = `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}).then((r) => ` +
		`r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.target + " " + n.failureSummary).join("; ")))`
	var violations []string
	if err := errors.Join(p.Eval(axe, nil), p.Eval(run, &violations)); err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Errorf("%s: %s", view, v)
	}
}

// attack opens a page of another origin, at the same address and by a name of it, in the browser that has the cookie and the key.
// The target is the body of a request that would change a pod.
func attack(t *testing.T, network *browser.Network, b *browser.Browser, host, target string) {
	t.Helper()
	l, err := network.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var cookies []string // those of the page
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cookie := r.Header.Get("Cookie"); strings.Contains(cookie, "podstead-") {
			mu.Lock()
			cookies = append(cookies, cookie)
			mu.Unlock()
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>attacker</title>"))
	})}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, name := range []string{"127.0.0.1", "localhost"} {
		p := b.Open("http://" + net.JoinHostPort(name, port))
		p.Await("document.title === 'attacker'")
		p.Await(fmt.Sprintf(`fetch("http://%s/api/pods", {credentials: "include"}).then(() => false, () => true)`, host))
		p.Await(fmt.Sprintf(
			`fetch("http://%s/api/pods", {credentials: "include", headers: {"Podstead-Key": "x"}}).then(() => false, () => true)`, host))
		p.Await(fmt.Sprintf(`new Promise((done) => { const socket = new WebSocket("ws://%s/api/pods"); `+
			`socket.onopen = () => done(false); socket.onerror = () => done(true); })`, host))
		p.Await(fmt.Sprintf(`new Promise((done) => { const { name, uid } = JSON.parse(%q), socket = new WebSocket(`+
			"`ws://%s/api/exec?pod=${name}&uid=${uid}&container=app&width=80&height=24`"+`, ["v1.flow.channel.podstead"]); `+
			`socket.onopen = () => done(false); socket.onerror = () => done(true); })`, target, host))
		for _, action := range []string{"stop", "restart"} { // no-cors: it is sent, and the page cannot read the answer
			p.Await(fmt.Sprintf(`fetch("http://%s/api/%s", {method: "POST", mode: "no-cors", credentials: "include", body: %q}).then(() => true)`,
				host, action, target))
		}
		for _, path := range []string{"/", "/terminal/"} {
			p.Await(fmt.Sprintf(`(window.frame = document.createElement("iframe"), frame.src = "http://%s%s", `+
				`document.body.append(frame), true)`, host, path))
			p.AwaitProblem("frame-ancestors")
		}
		p.Close()
	}
	// A server on another port gets the cookie, which does not suffice without the key.
	mu.Lock()
	defer mu.Unlock()
	if len(cookies) == 0 {
		t.Error("the browser has sent the cookie to no other port")
	}
	client := &http.Client{Transport: &http.Transport{DialContext: network.Dial, DisableKeepAlives: true}}
	for _, cookie := range cookies {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/api/host", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Cookie", cookie)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("with the cookie only: %s", answer.Status)
		}
	}
}
