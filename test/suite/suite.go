// Package suite runs the tests of a package that need root: several side by side, each in a process, a network namespace and a mount
// namespace of its own. Bridges, rules, kernel settings, ports and mounts of a test affect neither the host nor other tests. It is for
// tests only.
package suite

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Options say how the tests of a package run. The zero value runs each test in a process of its own.
type Options struct {
	// Slow are the tests, or tests and subtests, that take longest, the slowest first. They start first, so that none of them ends long
	// after all others.
	Slow []string
	// Parts are patterns of the subtests of a test, as for -run. Each pattern runs as a test of its own.
	Parts map[string][]string
	// Together runs all tests in one process, because they share what is expensive to make.
	Together bool
	// Around is called once, in the process that starts the others. It calls run between its own preparation and cleanup, and returns the
	// exit code. It may be nil.
	Around func(run func() int) int
}

// inside marks a process that runs tests.
const inside = "PODSTEAD_TEST_INSIDE"

// Main is for TestMain: os.Exit(suite.Main(m.Run, suite.Options{})). It returns the exit code, which is not 0 if there are no tests.
//
// Without -run, only the tests in files with a build tag run: go test ./... runs all others. -parallel is the number of processes of all
// packages of this go test, by default three for each processor, since most tests wait. A process is killed if this one exits.
func Main(run func() int, o Options) int {
	if os.Getenv(inside) != "" {
		if err := errors.Join(loopback(), ownMounts()); err != nil {
			return fail(err)
		}
		return run()
	}
	flag.Parse()
	around := o.Around
	if around == nil {
		around = func(run func() int) int { return run() }
	}
	return around(func() int {
		parts, err := partsOf(o)
		if err != nil {
			return fail(err)
		}
		if len(parts) == 1 && parts[0].name == "" {
			defer acquire()()
			return alone(parts[0].args())
		}
		return runParts(parts)
	})
}

// Alone calls run in a process in namespaces of its own, and returns the exit code. It executes this program again.
func Alone(run func() int) int {
	if os.Getenv(inside) != "" {
		return Main(run, Options{})
	}
	return alone(os.Args[1:])
}

func alone(args []string) int {
	cmd := command(args)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	runtime.LockOSThread() // the parent death signal is sent when this thread exits
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if exit, exited := errors.AsType[*exec.ExitError](err); exited && exit.Exited() {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		return fail(err)
	}
	return 0
}

// command returns this program in namespaces of its own, not started.
func command(args []string) *exec.Cmd {
	cmd := exec.Command(executable(), args...)
	cmd.Stdin = os.Stdin
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	return cmd
}

// executable returns the path of this program. /proc/self/exe would change the name of the process, which tests compare.
func executable() string {
	if path, err := os.Executable(); err == nil {
		return path
	}
	return os.Args[0]
}

func runParts(parts []part) int {
	verbose := value("test.v")
	p := printer{verbose: verbose != "" && verbose != "false", marked: verbose == "test2json"}
	var group sync.WaitGroup
	for _, part := range parts {
		release := acquire() // here, so that the parts start in their order
		if p.failed() && value("test.failfast") == "true" {
			release()
			break
		}
		p.start(part)
		group.Go(func() {
			defer release()
			output, err := part.run()
			p.end(part, output, err)
		})
	}
	group.Wait()
	return p.summary()
}

// part is what one process runs.
type part struct {
	name    string // of a test, or of a test and its subtest; "" for all tests of this run
	pattern string // for -run; "" for that of this process
}

// partsOf returns the parts of this run, in the order in which they start.
func partsOf(o Options) ([]part, error) {
	for _, other := range []string{"test.list", "test.bench", "test.fuzz"} {
		if value(other) != "" {
			return whole, nil
		}
	}
	names, err := testNames(".")
	if err != nil {
		return nil, err
	}
	return divide(names, o, value("test.run"))
}

// whole is all that this process would run.
var whole = []part{{}}

// divide returns the parts of the tests that match a pattern of -run; "" is all tests whose files have a build tag. It returns [whole] for
// a pattern of subtests, and without names, such as in a virtual machine, which has no sources.
func divide(names []testName, o Options, pattern string) ([]part, error) {
	if names == nil || o.Together && pattern != "" || strings.Contains(pattern, "/") {
		return whole, nil
	}
	matches, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("flag -run: %w", err)
	}
	var selected []string
	for _, name := range names {
		if matches.MatchString(name.test) && (name.tagged || pattern != "") {
			selected = append(selected, name.test)
		}
	}
	if o.Together {
		return []part{{pattern: "^(" + strings.Join(selected, "|") + ")$"}}, nil
	}
	var parts []part
	for _, name := range selected {
		if len(o.Parts[name]) == 0 {
			parts = append(parts, part{name, "^" + name + "$"})
		}
		for _, p := range o.Parts[name] {
			parts = append(parts, part{name + "/" + p, "^" + name + "$/" + p})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return rank(o.Slow, a.name) - rank(o.Slow, b.name) })
	return parts, nil
}

// rank returns the place of a part, or of its test, in a list, or the length of the list.
func rank(list []string, name string) int {
	i := slices.IndexFunc(list, func(slow string) bool { return slow == name || strings.HasPrefix(name, slow+"/") })
	if i < 0 {
		return len(list)
	}
	return i
}

// outputDelay is the time for output of processes that a test has left behind.
const outputDelay = 20 * time.Second

// run runs the part in a process, and returns its output and how it failed.
func (p part) run() (output []byte, err error) {
	cmd := command(p.args())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = outputDelay
	runtime.LockOSThread() // the parent death signal is sent when this thread exits
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	return out.Bytes(), err
}

// args returns the flags of this process with the tests of the part.
func (p part) args() []string {
	if p.pattern == "" {
		return os.Args[1:]
	}
	flags := []string{"-test.run=" + p.pattern}
	if timeout, err := time.ParseDuration(value("test.timeout")); err == nil && timeout > 0 {
		flags = append(flags, "-test.timeout="+max(timeout-time.Since(started), time.Second).String())
	}
	return append(flags, slices.DeleteFunc(slices.Clone(os.Args[1:]), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=") // go test writes flags of tests in one word
		return slices.Contains(replaced, name)
	})...)
}

// replaced are the flags that a process does not inherit. The log is for the cache of go test, and has one writer.
var replaced = []string{"-test.run", "-test.timeout", "-test.testlogfile"}

// started is when this process started. go test ends it a minute after the timeout, before others could report where they hang.
var started = time.Now()

func value(name string) string {
	if f := flag.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

func fail(err error) int {
	fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
	return 1
}

// printer prints the output of each part in one piece, as go test expects it.
type printer struct {
	verbose, marked bool

	mu    sync.Mutex
	count int
	wrong bool
}

// mark begins a line of the testing package in output for go test -json.
const mark = "\x16"

func (p *printer) start(part part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	if p.verbose {
		p.line("=== RUN   " + part.test())
	}
}

func (p *printer) end(part part, output []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.verbose {
		p.line("=== NAME  " + part.test())
	}
	for line := range bytes.Lines(output) {
		text := strings.TrimSuffix(strings.TrimPrefix(string(line), mark), "\n")
		if text == "PASS" || text == "FAIL" || text == "=== RUN   "+part.test() {
			continue // of the process, or printed by start
		}
		os.Stdout.Write(line)
	}
	if len(output) > 0 && output[len(output)-1] != '\n' {
		fmt.Println()
	}
	if err == nil {
		return
	}
	p.wrong = true
	if exit, exited := errors.AsType[*exec.ExitError](err); !exited || exit.ExitCode() != 1 { // 1: the test has reported its failure
		fmt.Printf("%s: %v\n", part.name, err)
		if p.verbose {
			p.line("--- FAIL: " + part.test() + " (0.00s)")
		}
	}
}

// test returns the name of the test of the part.
func (p part) test() string {
	name, _, _ := strings.Cut(p.name, "/")
	return name
}

func (p *printer) line(text string) {
	if p.marked {
		text = mark + text
	}
	fmt.Println(text)
}

func (p *printer) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wrong
}

func (p *printer) summary() int {
	if p.count == 0 {
		fmt.Println("testing: warning: no tests to run")
		p.wrong = value("test.run") == "" // a package of root tests has some
	}
	if p.failed() {
		fmt.Println("FAIL")
		return 1
	}
	fmt.Println("PASS")
	return 0
}
