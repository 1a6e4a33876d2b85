//go:build e2e

package faults

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/internal/browser"
)

// Expressions of the page: the document in the frame of a terminal, what is on its screen, and the state of its session.
const (
	frameDocument = "document.querySelector('iframe').contentDocument"
	screen        = frameDocument + ".querySelector('.xterm-rows').innerText"
	sessionState  = frameDocument + ".getElementById('state').innerText"
	// asksToLeave holds if the browser asks before it closes the page, which keys such as Ctrl-W do.
	asksToLeave = "!" + frameDocument + ".defaultView.dispatchEvent(new Event('beforeunload', { cancelable: true }))"
	// terminalOpener is the button that opens and closes the terminal.
	terminalOpener = "document.querySelector('[aria-labelledby=terminal] button.quiet')"
)

// command types a command at the prompt. What is typed before it can be lost: Ctrl-C drops input that no program has read.
func (f *fixture) command(p *browser.Page, text string) {
	f.Helper()
	f.awaitScreen(p, `/ #\pZ*\s*$`)
	for _, key := range text {
		p.Key(string(key))
	}
	p.Key("Enter")
}

// awaitScreen waits until the screen of the terminal matches an expression.
func (f *fixture) awaitScreen(p *browser.Page, expression string) {
	f.Helper()
	f.Await(func() error {
		var text string
		if err := p.Eval(screen, &text); err != nil {
			return err
		}
		if !regexp.MustCompile(expression).MatchString(text) {
			return fmt.Errorf("the terminal shows %q", text)
		}
		return nil
	})
}

// control presses a letter with Ctrl.
func control(p *browser.Page, letter string) {
	code := int(strings.ToUpper(letter)[0])
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		p.Call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": letter, "modifiers": 2, "windowsVirtualKeyCode": code})
	}
}

// TestPageTerminal opens terminals of containers in the page of podstead ui.
func TestPageTerminal(t *testing.T) {
	f := newFixture(t)
	f.MustRun("get")
	f.MustCreate("web", noGrace+container("app", "sleep 100000")+container("side", "sleep 100000"))
	f.MustCreate("bare", noGrace+container("app", "rm /bin/sh; exec sleep 100000"))
	t.Cleanup(func() {
		f.MustRun("delete", "web", "--force")
		f.MustRun("delete", "bare", "--force")
	})
	network := browser.NewNetwork(t)
	address, err := url.Parse(f.ui(network, "--allow-actions"))
	f.Check(err)
	site := "http://" + address.Host
	b := browser.New(t, network, t.TempDir())
	p := b.Open(address.String())
	axe := f.axe()
	picture := func(name string) {
		p.Picture(filepath.Join(f.Repository, ".cache", "ui", name+".png"))
		checkAccess(t, p, axe, name)
	}
	p.Size(1280, 900, "light")
	p.Await("document.querySelector('tbody a') && !location.href.includes('token')")
	open := func(pod string) {
		t.Helper()
		p.Go(site + "/#/pod/" + pod)
		p.Await("document.querySelector('h1')?.innerText.startsWith('" + pod + "')")
		p.Await(terminalOpener + "?.innerText === 'Open a terminal'")
		p.Await("(" + terminalOpener + ".focus(), document.activeElement === " + terminalOpener + ")")
		p.Key("Enter")
	}
	p.Go(site + "/#/pod/web")
	p.Await(terminalOpener + "?.checkVisibility()")
	if slices.ContainsFunc(p.Requests(), func(r string) bool { return strings.Contains(r, "/terminal/") }) {
		t.Error("a page without a terminal has loaded xterm.js")
	}
	open("web")
	p.Await(sessionState + " === 'Shell in container app'")
	p.Await("document.querySelector('[aria-labelledby=terminal] code').innerText === 'podstead exec -it web -c app -- sh'")
	p.Await(asksToLeave)

	f.typeIn(p)
	f.floods(t, p)
	f.sessionEnds(p)

	// A container without a shell.
	open("bare")
	p.Await(sessionState + ".includes('no shell (sh)') && " + sessionState + ".includes('podstead debug -it bare --target app')")
	p.Size(390, 844, "dark")
	p.Await("document.querySelector('iframe').scrollIntoView() ?? true")
	picture("terminal-phone")

	// The frame alone, for the checks of accessibility.
	p.Size(1280, 900, "light")
	p.Await("(window.frameAddress = document.querySelector('iframe').src) && true")
	var frame string
	p.Value("window.frameAddress", &frame)
	p.Go(frame)
	p.Await("document.getElementById('state').innerText.includes('no shell (sh)')")
	checkAccess(t, p, axe, "the frame of a terminal")

	problems := slices.DeleteFunc(p.Problems(), func(problem string) bool { // the browser reports requests without a daemon
		return strings.Contains(problem, "502 (Bad Gateway)")
	})
	if len(problems) > 0 {
		t.Errorf("the console has %q", problems)
	}
	for _, request := range p.Requests() {
		if !strings.HasPrefix(request, site+"/") && request != "about:blank" {
			t.Errorf("the page has requested %s", request)
		}
	}

	// Without the key, podstead ui refuses the connection: no shell is killed.
	p.Await("(window.stored = Object.entries(localStorage)).length > 0")
	p.Await("(localStorage.clear(), document.getElementById('again').click(), true)")
	p.Await("document.getElementById('state').innerText === 'Cannot connect to podstead ui.'")
	p.Await("(window.stored.forEach(([name, value]) => localStorage.setItem(name, value)), localStorage.length > 0)")

	// A page that is closed ends its session with all processes.
	open("web")
	p.Await(sessionState + " === 'Shell in container app'")
	f.command(p, "sleep 98765 & sleep 98765")
	f.awaitSleeping("98765", 2)
	p.Close()
	f.awaitSleeping("98765", 0)
}

// typeIn types commands in a terminal.
func (f *fixture) typeIn(p *browser.Page) {
	// It has the size of the frame, also after the size of the page has changed.
	size := "(/\\n([0-9]+) ([0-9]+)\\n/.exec(" + screen + "))"
	f.command(p, "clear; tty; stty size")
	p.Await(screen + ".includes('/dev/pts/')")
	p.Await(size + "?.[1] == " + frameDocument + ".querySelectorAll('.xterm-rows > div').length")
	p.Await("(window.columns = +" + size + "[2]) > 100")
	p.Size(900, 900, "dark")
	p.Await(frameDocument + ".querySelector('.xterm-screen').offsetWidth < 880")
	f.command(p, "while sleep 0.2; do clear; tty; stty size; done")
	p.Await("+" + size + "?.[2] < window.columns - 30")
	// Ctrl-C reaches the command.
	control(p, "c")
	f.command(p, "clear; echo sle''eps; sleep 100000")
	f.awaitScreen(p, `(?m)^sleeps$`)
	control(p, "c")
	f.command(p, "echo $((20+22))")
	f.awaitScreen(p, `(?m)^42$`)
	// Colours need the style elements of xterm.js. A link of the container is text.
	f.command(p, `clear; printf '\033[31mred\033[0m \033]8;;http://attacker.example\007link\033]8;;\007 <b>bold</b>\n'`)
	f.awaitScreen(p, `(?m)^red link <b>bold`)
	p.Await("(([e]) => getComputedStyle(e).color !== getComputedStyle(e.parentElement).color)([..." + frameDocument +
		".querySelectorAll('.xterm-rows span')].filter((e) => e.innerText === 'red'))")
	p.Await("!" + frameDocument + ".querySelector('.xterm-rows b, .xterm-rows a, .xterm-underline-5')")
	p.Picture(filepath.Join(f.Repository, ".cache", "ui", "terminal-dark.png"))
	// Ctrl-M leaves the terminal, and Shift-Tab returns.
	control(p, "m")
	p.Await("document.activeElement.innerText === 'Close the terminal'")
	p.Await("(document.querySelector('iframe').contentDocument.querySelector('textarea').focus(), true)")
	p.Await("document.activeElement.tagName === 'IFRAME'")
	p.Size(1280, 900, "light")
}

// floods writes more than can be kept, in both directions.
func (f *fixture) floods(t *testing.T, p *browser.Page) {
	memory := func() (mebibytes int) {
		p.Value("Math.round(performance.memory.usedJSHeapSize / 2**20)", &mebibytes)
		return mebibytes
	}
	before := memory()
	f.command(p, "clear; seq 1000000; echo all; read line; clear; echo")
	f.awaitScreen(p, `(?m)^1000000\nall$`)
	if after := memory(); after > before+100 {
		t.Errorf("output of 7 MB: the page had %d MiB, and has %d MiB", before, after)
	}
	p.Key("Enter") // ash loses keys if its prompt is in the first line: it reads the position 1;5 as the begin of Ctrl with a key
	// An endless output does not hold up Ctrl-C.
	f.command(p, "yes")
	f.awaitScreen(p, `(?m)^y\ny$`)
	control(p, "c")
	f.command(p, "clear; echo $((40+2))")
	f.awaitScreen(p, `(?m)^42$`)
	// Accents without end are no endless cell, but fill lines. A sequence cannot scroll without end.
	f.command(p, `clear; printf a; yes $(printf '\314\201') | head -n 20000 | tr -d '\n'; printf '\033[2147483647S\nall''s\n'`)
	f.awaitScreen(p, `(?m)^alls$`)
	p.Await("[..." + frameDocument + ".querySelectorAll('.xterm-rows > div')].filter((e) => e.innerText.includes('\u0301')).length > 3")
	paste := func(size int) {
		p.Await(fmt.Sprintf(`(([area], data) => { data.setData("text/plain", "0123456789abcde\n".repeat(%d / 16)); `+
			`area.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true })); return true; })`+
			`(%s.querySelectorAll("textarea"), new DataTransfer())`, size, frameDocument))
	}
	f.command(p, "stty -echo; echo rea''dy; cat >/tmp/pasted")
	f.awaitScreen(p, `(?m)^ready$`)
	paste(640 << 10)
	control(p, "d")
	f.command(p, "stty echo; clear; wc -c /tmp/pasted")
	f.awaitScreen(p, `(?m)^655360 .tmp.pasted$`)
	f.command(p, "echo sle''eps; sleep 100000")
	f.awaitScreen(p, `(?m)^sleeps$`)
	for range 3 { // more than the page, podstead ui and the daemon keep
		paste(800 << 10)
	}
	p.Await(sessionState + ".includes('Some of it was dropped')")
}

// sessionEnds ends sessions, and opens them again.
func (f *fixture) sessionEnds(p *browser.Page) {
	again := func() {
		p.Await(frameDocument + ".activeElement.innerText === 'Open again'")
		p.Key("Enter")
		p.Await(sessionState + " === 'Shell in container app'")
	}
	p.Await("(" + terminalOpener + ".click(), !document.querySelector('iframe'))")
	p.Await("(" + terminalOpener + ".click(), document.querySelector('iframe'))")
	p.Await(sessionState + " === 'Shell in container app'")
	f.command(p, "exit 3")
	p.Await(sessionState + " === 'The shell has exited with code 3.'")
	p.Await("!(" + asksToLeave + ")")
	again()
	f.command(p, "exit")
	p.Await(sessionState + " === 'The shell has exited with code 0.'")
	again()
	answers := func() {
		f.command(p, "echo $((40+2))")
		f.awaitScreen(p, `(?m)^42$`)
	}
	answers()
	f.MustKillDaemon()
	p.Await(sessionState + ".includes('daemon unavailable')")
	f.MustRun("get")
	again()
	answers()
	f.MustRun("restart", "web")
	p.Await(sessionState + ".startsWith('The shell has exited')")
}
