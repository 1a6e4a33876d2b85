package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// outcome is the outcome of a mutant.
type outcome string

const (
	killed   outcome = "killed"
	survived outcome = "survived"
	invalid  outcome = "did not compile"
)

type result struct {
	mutant
	outcome outcome
}

// runAll runs the tests against each mutant and returns the results in the order of the mutants. The unchanged package is tested
// first, because tests that fail without a change would kill every mutant.
func runAll(ctx context.Context, out io.Writer, o options, mutants []mutant) ([]result, error) {
	tmp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)

	kit, err := newKit(ctx, o.dir, tmp)
	if err != nil {
		return nil, err
	}
	took, err := runUnchanged(ctx, o, kit, filepath.Join(tmp, "unchanged"), mutants[0])
	if err != nil {
		return nil, err
	}
	if o.timeout == 0 {
		o.timeout = 5*time.Second + 10*took
	}
	fmt.Fprintf(out, "%d mutants of %s; the tests of the unchanged package pass in %v\n", len(mutants), o.dir, took.Round(time.Millisecond))

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]result, len(mutants))
	next := make(chan int)
	var workers sync.WaitGroup
	var progress progress
	for range max(1, o.parallel) {
		workers.Go(func() {
			for i := range next {
				got, err := runOne(ctx, o, kit, filepath.Join(tmp, strconv.Itoa(i)), mutants[i])
				if err != nil {
					cancel(fmt.Errorf("run %s: %w", mutants[i], err))
					continue
				}
				results[i] = result{mutants[i], got}
				progress.print(out, len(mutants), results[i])
			}
		})
	}
	for i := range mutants {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	return results, context.Cause(ctx)
}

// runUnchanged returns how long the tests of the unchanged package take. They must pass. The package is built like a mutant,
// with a change that has no effect.
func runUnchanged(ctx context.Context, o options, k *kit, tmp string, m mutant) (time.Duration, error) {
	if o.timeout == 0 {
		o.timeout = 10 * time.Minute
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return 0, err
	}
	m.text = string(m.original[m.start:m.end])
	binary, err := k.build(ctx, tmp, m)
	if err == nil && binary == "" {
		err = errors.New("the unchanged package does not compile")
	}
	if err != nil {
		return 0, fmt.Errorf("build the tests of %s: %w", o.dir, err)
	}
	start := time.Now()
	got, text, err := test(ctx, o, tmp, binary)
	if err == nil && got != survived {
		err = fmt.Errorf("tests of the unchanged package %s fail:\n%s", o.dir, text)
	}
	return time.Since(start), err
}

// progress prints survivors as they are found, and a line for every hundred mutants.
type progress struct {
	mu   sync.Mutex
	done int
}

func (p *progress) print(out io.Writer, total int, r result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if r.outcome == survived {
		fmt.Fprintf(out, "survived: %s\n", r.mutant)
	}
	if p.done%100 == 0 {
		fmt.Fprintf(out, "%d of %d\n", p.done, total)
	}
}

// runOne returns the outcome of a mutant. An error means that it could not be tested.
func runOne(ctx context.Context, o options, k *kit, tmp string, m mutant) (outcome, error) {
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	binary, err := k.build(ctx, tmp, m)
	if err != nil {
		return "", err
	}
	if binary == "" {
		return invalid, nil
	}
	got, _, err := test(ctx, o, tmp, binary)
	return got, err
}

// test runs a test binary, with the tests of -last after the others. The text is the output of failed tests.
func test(ctx context.Context, o options, tmp, binary string) (got outcome, text string, err error) {
	if o.last == "" {
		return testSome(ctx, o, tmp, binary, "-test.run=.")
	}
	if got, text, err = testSome(ctx, o, tmp, binary, "-test.skip="+o.last); got != survived {
		return got, text, err
	}
	return testSome(ctx, o, tmp, binary, "-test.run="+o.last)
}

// testSome runs the tests selected by the flag choice, within the limits of o: a mutant may loop or allocate forever.
func testSome(ctx context.Context, o options, tmp, binary, choice string) (outcome, string, error) {
	limited, cancel := context.WithTimeout(ctx, o.timeout+10*time.Second) // longer than the binary's own timeout, which prints stacks
	defer cancel()
	cmd := exec.CommandContext(limited, "sh", "-c", `ulimit -v "$1" && shift && exec "$@"`, "sh", strconv.Itoa(o.memory*1024),
		binary, choice, "-test.short", "-test.failfast", "-test.timeout="+o.timeout.String())
	cmd.Dir = o.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	output, err := cmd.CombinedOutput()
	switch exit := (*exec.ExitError)(nil); {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err == nil:
		return survived, "", nil
	case errors.As(err, &exit), limited.Err() != nil, errors.Is(err, exec.ErrWaitDelay):
		return killed, string(output), nil
	}
	return "", "", err
}
