package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is an event of go test -json (cmd/test2json).
type event struct {
	Time    time.Time
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// key identifies a test. Test is empty for the package.
type key struct{ pkg, test string }

// report follows the events of one run of go test.
type report struct {
	out, log io.Writer
	terminal bool
	interval time.Duration // between two lines that show where the run is

	start      time.Time
	processors *processors
	running    map[key]time.Time
	paused     map[key]bool
	passed     map[string]int // tests, by package
	seconds    map[key]float64
	output     map[key][]string
	failed     []key
	tail       map[string][]string // by package, of all its tests
	failures   map[key][]string
	skipped    []string
	shown      bool // the line of a terminal is on the screen
}

func newReport(out, log io.Writer, terminal bool) *report {
	r := &report{
		out: out, log: log, terminal: terminal, interval: 20 * time.Second, start: time.Now(), processors: newProcessors(),
		running: map[key]time.Time{}, paused: map[key]bool{}, passed: map[string]int{}, seconds: map[key]float64{},
		output: map[key][]string{}, tail: map[string][]string{}, failures: map[key][]string{},
	}
	if terminal {
		r.interval = time.Second
	}
	return r
}

// maxLine is the length from which the rest of a line is dropped.
const maxLine = 1 << 20

// readLines calls f for each line, without its end. It reads until the end, so that the writer never blocks.
func readLines(in io.Reader, f func(line string)) {
	reader := bufio.NewReaderSize(in, maxLine)
	for {
		line, isPrefix, err := reader.ReadLine()
		if err != nil {
			return
		}
		f(string(line))
		for isPrefix && err == nil {
			_, isPrefix, err = reader.ReadLine()
		}
	}
}

// seed matches the seeds of fuzz tests. rapid skips those that are too short for its generator. They are not tests.
var seed = regexp.MustCompile(`^Fuzz\w*/seed#`)

// line takes a line of the output of go test. Lines that are no events, such as errors of the compiler, are printed.
func (r *report) line(text string) {
	var e event
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &e) != nil {
		r.print(text + "\n")
		return
	}
	k := key{short(e.Package), e.Test}
	switch e.Action {
	case "run":
		if _, known := r.running[k]; !known {
			r.running[k] = time.Now()
		}
	case "pause": // a parallel test waits for others
		delete(r.running, k)
		r.paused[k] = true
	case "cont": // also printed before output of a test
		if r.paused[k] {
			delete(r.paused, k)
			r.running[k] = time.Now()
		}
	case "output", "build-output":
		r.outputOf(k, e)
	case "pass", "fail", "skip":
		delete(r.running, k)
		r.seconds[k] = max(r.seconds[k], e.Elapsed)
		r.result(k, e.Action)
		delete(r.output, k)
		if k.test == "" {
			r.endPackage(k.pkg)
		}
	}
}

// endPackage forgets the tests of a package that have not ended, such as those of a program that panicked or timed out.
func (r *report) endPackage(pkg string) {
	ofPackage := func(k key) bool { return k.pkg == pkg }
	maps.DeleteFunc(r.output, func(k key, _ []string) bool { return ofPackage(k) })
	maps.DeleteFunc(r.running, func(k key, _ time.Time) bool { return ofPackage(k) })
	delete(r.tail, pkg)
}

// maxOutput is the number of lines of a test that are kept.
const maxOutput = 2000

func (r *report) outputOf(k key, e event) {
	if e.Action == "build-output" || k.test == "" && isClosing(e.Output) {
		r.print(e.Output)
		return
	}
	fmt.Fprint(r.log, e.Output)
	r.output[k] = last(append(r.output[k], e.Output))
	r.tail[k.pkg] = last(append(r.tail[k.pkg], e.Output))
}

func last(lines []string) []string { return lines[max(0, len(lines)-maxOutput):] }

// crash matches the first line of a report that go test attributes to any test that ran at that time.
var crash = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE|SIG[A-Z]+: )`)

// crashOf returns what a package printed from its first crash on.
func (r *report) crashOf(pkg string) []string {
	if i := slices.IndexFunc(r.tail[pkg], crash.MatchString); i >= 0 {
		return r.tail[pkg][i:min(len(r.tail[pkg]), i+maxPrinted)]
	}
	return nil
}

// isClosing reports whether a line is the last one that go test prints for a package.
func isClosing(line string) bool {
	return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "---\t")
}

func (r *report) result(k key, action string) {
	switch {
	case action == "skip" && k.test != "" && !seed.MatchString(k.test):
		r.skipped = append(r.skipped, k.String())
	case action == "pass" && k.test != "" && !strings.Contains(k.test, "/"):
		r.passed[k.pkg]++
	case action == "fail":
		r.failed = append(r.failed, k)
		r.failures[k] = r.output[k]
		if k.test == "" {
			r.failures[k] = slices.Concat(r.crashOf(k.pkg), r.output[k])
		}
		r.print(fmt.Sprintf("--- FAIL: %v\n", k))
	}
}

// count returns the number of tests that ended, without subtests.
func (r *report) count() int { return record{Tests: r.tests()}.count() }

func (k key) String() string {
	if k.test == "" {
		return k.pkg
	}
	return k.pkg + " " + k.test
}

// short returns the path of a package below that of the module.
func short(pkg string) string {
	pkg, _, _ = strings.Cut(pkg, " ") // "p [p.test]"
	return strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
}

const module = "github.com/podstead/podstead"

// reported matches what a test reports with t.Error, which is printed even if much follows.
var reported = regexp.MustCompile(`^ +\w+_test\.go:\d+: `)

// noise are lines of a test that explain no failure.
var noise = regexp.MustCompile(`^ *(=== (RUN|PAUSE|CONT|NAME)|--- PASS)`)

// failureText returns the output of each failed test, since the beginning of a long run is far away.
func (r *report) failureText() string {
	var b strings.Builder
	for _, k := range r.failed {
		lines := slices.DeleteFunc(r.failures[k], noise.MatchString)
		if len(lines) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n=== %v\n", k)
		dropped := max(0, len(lines)-maxPrinted)
		for i, line := range lines {
			if i >= dropped || reported.MatchString(line) {
				b.WriteString(cut(line, maxColumns))
			}
		}
	}
	return b.String()
}

// What is printed of a failed test.
const (
	maxPrinted = 80
	maxColumns = 400
)

func cut(line string, n int) string {
	if len(line) <= n {
		return line
	}
	return line[:n] + "...\n"
}

// tests returns the seconds of the packages and of their tests, without subtests but those of tests that have at least some seconds.
func (r *report) tests() []measured {
	const worthKeeping = 1.0
	var all []measured
	for k, seconds := range r.seconds {
		if !strings.Contains(k.test, "/") || seconds >= worthKeeping && strings.Count(k.test, "/") == 1 {
			all = append(all, measured{k.pkg, k.test, seconds})
		}
	}
	slices.SortFunc(all, func(a, b measured) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Test, b.Test))
	})
	return all
}

// print prints text above the line of a terminal.
func (r *report) print(text string) {
	r.clear()
	fmt.Fprint(r.out, text)
}

func (r *report) clear() {
	if r.shown {
		fmt.Fprint(r.out, "\r\x1b[K")
		r.shown = false
	}
}

// show prints the time, the tests that passed in the packages that run, and the tests that run for longest.
func (r *report) show() {
	text := r.where(time.Now())
	if !r.terminal {
		fmt.Fprintln(r.out, text)
		return
	}
	r.clear()
	fmt.Fprint(r.out, text)
	r.shown = true
}

func (r *report) where(now time.Time) string {
	const most = 4
	running := slices.SortedFunc(maps.Keys(r.running), func(a, b key) int {
		return cmp.Or(r.running[a].Compare(r.running[b]), cmp.Compare(a.String(), b.String()))
	})
	running = slices.DeleteFunc(running, func(k key) bool { return k.test == "" || strings.Contains(k.test, "/") })
	passed := 0
	for _, n := range r.passed {
		passed += n
	}
	text := fmt.Sprintf("%s  %d tests passed, %d failed", minutes(now.Sub(r.start)), passed, len(r.failed))
	for i, k := range running {
		if i == most {
			text += fmt.Sprintf(", and %d more", len(running)-most)
			break
		}
		text += fmt.Sprintf("%s %v %.0fs", []string{", running", ","}[min(i, 1)], k, now.Sub(r.running[k]).Seconds())
	}
	if r.terminal {
		text = text[:min(len(text), 110)]
	}
	return text
}

func minutes(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}
