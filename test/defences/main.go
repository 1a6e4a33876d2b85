// Command defences checks that the tests of hostile pods, images and files fail without the defences that they are for.
//
//	go run ./test/defences [-run regexp]
//
// It switches off one defence at a time by a small change of the source, which it finds by syntax, runs a test, and expects it to fail
// with the texts in the table. The sources are not modified: the changed files are an overlay of the go command. Tests on real containers
// (build tag e2e) need root, and run with programs that are built with the change.
//
// The exit code is 1 if a test passes without its defence, or fails in another way.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/podstead/podstead/test/internal/rig"
)

// defence is a change that switches off a defence, and the test that then fails.
type defence struct {
	name    string // what stops the attacks
	edits   []edit
	pkg     string // directory of the package of the test
	test    string // name, or a pattern of names
	e2e     bool
	attacks []attack
}

func (d defence) String() string { return fmt.Sprintf("%s (%s %s)", d.name, d.pkg, d.test) }

// attack is an attack that succeeds without the defence.
type attack struct {
	tries   string // the attempt, or the beginning of that of a row of test/hostile
	subtest string // that fails; "": the test
	shows   string // part of its output
}

// What failed tests show.
const (
	accepted         = "error is <nil>"
	allocates        = "MiB were allocated"
	remains          = "remaining: "
	unpacks          = "diff id"
	refusedElsewhere = "lacks"
)

// timeout is for one test. A lease delays its victim by 45 s each time.
const timeout = 4 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "defences:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("defences", flag.ContinueOnError)
	only := flags.String("run", "", "run only defences that match `regexp`")
	show := flags.Bool("v", false, "print the output of the tests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	root, err := rig.Repository()
	if err != nil {
		return err
	}
	attacks := 0
	var failed []string
	for _, d := range defences() {
		if !pattern.MatchString(d.String()) {
			continue
		}
		start := time.Now()
		output, err := d.try(ctx, root)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		result := "ok    "
		if err != nil {
			result = "FAILED"
			failed = append(failed, d.String())
		}
		fmt.Fprintf(out, "%s %3.0fs  %s\n", result, time.Since(start).Seconds(), d)
		if err != nil {
			fmt.Fprintln(out, err)
		}
		if err != nil || *show {
			fmt.Fprintln(out, output)
		}
		attacks += len(d.attacks)
	}
	fmt.Fprintf(out, "%d attacks, %d defences failed\n", attacks, len(failed))
	if len(failed) > 0 {
		return fmt.Errorf("not confirmed: %s", strings.Join(failed, "; "))
	}
	return nil
}

// try runs the test without the defence. The error is nil if it fails as expected.
func (d defence) try(ctx context.Context, root string) (output string, err error) {
	dir, err := os.MkdirTemp("", "defence")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := d.overlay(root, dir)
	if err != nil {
		return "", err
	}
	tags, programs := "", filepath.Join(dir, "bin")
	if d.e2e {
		tags = "e2e"
		text, err := command(ctx, root, "build", "-trimpath", "-ldflags=-s -w", "-overlay", overlay, "-o", programs+"/",
			"./cmd/podstead", "./cmd/podstead-monitor", "./cmd/containerd-shim-podstead-v1").CombinedOutput()
		if err != nil {
			return string(text), fmt.Errorf("build programs: %w", err)
		}
	}
	binary := filepath.Join(dir, "test")
	text, err := command(ctx, root, "test", "-c", "-vet=off", "-tags", tags, "-overlay", overlay, "-o", binary, d.pkg).CombinedOutput()
	if err != nil {
		return string(text), fmt.Errorf("build test: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, timeout+time.Minute) // longer than the binary's own timeout, which prints stacks
	defer cancel()
	cmd := exec.CommandContext(limited, binary, "-test.run=^("+d.test+")$", "-test.timeout="+timeout.String())
	cmd.Dir = filepath.Join(root, d.pkg)
	cmd.Env = append(os.Environ(), rig.Programs+"="+programs)
	cmd.WaitDelay = 5 * time.Second
	text, err = cmd.CombinedOutput()
	return string(text), d.check(string(text), err)
}

// check compares the result of a test with what is expected.
func (d defence) check(output string, result error) error {
	if result == nil {
		return errors.New("the test passes without the defence")
	}
	var errs []error
	for _, a := range d.attacks {
		part := output
		if a.subtest != "" {
			_, part, _ = strings.Cut(output, "--- FAIL: "+a.subtest+" (")
			part, _, _ = strings.Cut(part, "--- FAIL: ")
		}
		if !strings.Contains(part, a.shows) {
			errs = append(errs, fmt.Errorf("%s: the output of the test does not contain %q", a.tries, a.shows))
		}
	}
	return errors.Join(errs...)
}

// overlay writes the changed files to dir, and returns the path of the overlay file.
func (d defence) overlay(root, dir string) (string, error) {
	changed := map[string]string{} // text by path
	for _, e := range d.edits {
		if err := e.apply(root, changed); err != nil {
			return "", err
		}
	}
	replace := map[string]string{}
	for i, path := range sortedKeys(changed) {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replace[path], []byte(changed[path]), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// command returns a go command.
func command(ctx context.Context, root string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd
}
