// Command progress runs go test -json and shows where it is. It prints the closing line of each package, the output of failed tests, and
// which tests run for how long. It keeps the seconds of each test.
//
//	go run ./test/progress -suite unit -- go test -json ./...
//	go run ./test/progress -summary unit,features
//	go run ./test/progress -page docs/testing.md
//
// The directory of the records also has all output in NAME.log, and that of failed tests in NAME.failures.
//
// The exit code is 1 if go test fails, or if -no-skips is set and a test was skipped or none was run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "progress:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("progress", flag.ContinueOnError)
	name := flags.String("suite", "", "`name` of the suite")
	dir := flags.String("dir", filepath.Join(".cache", "test"), "`directory` of the records")
	noSkips := flags.Bool("no-skips", false, "fail if a test is skipped, or if none is run")
	summary := flags.String("summary", "", "print a line for each of these `suites`")
	page := flags.String("page", "", "write the table of all records into this `file`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *summary != "":
		return printSummary(out, *dir, strings.Split(*summary, ","))
	case *page != "":
		return writePage(*page, *dir)
	case *name == "" || flags.NArg() == 0:
		return errors.New("usage: progress -suite name -- command")
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(*dir, *name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	r := newReport(out, log, isTerminal(out))
	start := time.Now()
	err = r.follow(ctx, flags.Args())
	if err == nil && *noSkips && r.count() == 0 {
		err = errors.New("no test was run")
	}
	if err == nil && *noSkips && len(r.skipped) > 0 {
		err = fmt.Errorf("skipped tests are not allowed here: %s", strings.Join(r.skipped, ", "))
	}
	took := time.Since(start)
	record := record{Suite: *name, Seconds: took.Seconds(), Processors: r.processors.shares(took), Failed: err != nil, Tests: r.tests()}
	failures := r.failureText()
	r.print(failures)
	return errors.Join(err, record.write(*dir), os.WriteFile(filepath.Join(*dir, *name+".failures"), []byte(failures), 0o644))
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// endDelay is the time that go test has to end its tests after an interrupt.
const endDelay = 30 * time.Second

// follow runs the command and reports its events.
func (r *report) follow(ctx context.Context, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = endDelay
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		readLines(stdout, func(line string) { lines <- line })
	}()
	var watching sync.WaitGroup
	watched, stop := context.WithCancel(ctx)
	watching.Go(func() { r.processors.watch(watched) })
	defer watching.Wait()
	defer stop()
	tick := time.NewTicker(r.interval)
	defer tick.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				r.clear()
				return cmd.Wait()
			}
			r.line(line)
		case <-tick.C:
			r.show()
		}
	}
}
