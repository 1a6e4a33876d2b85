// Command mutate runs mutation tests: it changes a package in many small ways, one at a time, and runs the package's tests
// against each change.
//
//	go run ./test/mutate [flags] ./supervisor/lifecycle
//
// A changed package is a mutant: a comparison is shifted or negated, a boolean is inverted, a number is off by one, or a
// statement, branch or case is removed. A mutant is killed if the tests fail, panic, deadlock, or exceed a time or memory limit.
// It survives if they pass. Mutants that do not compile do not count. The sources are not modified, and importers of the package
// are compiled only once.
//
// A survivor is either a missing test or an equivalent mutant. Equivalent mutants are explained in a file (see -explained), one
// line each, under the key that this command prints: the code before and after the change. A key does not contain a function or a file.
//
// The exit code is 1 if fewer mutants than -min-kill percent were killed, if a survivor has no explanation, or if an explanation
// refers to a mutant that does not exist.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// options are the flags; parse describes them.
type options struct {
	dir       string
	minKill   float64
	explained string
	sample    int
	seed      uint64
	parallel  int
	timeout   time.Duration
	memory    int
	last      string
	function  string
	list      bool
}

// errBelow means that the mutants were run and too few were killed.
var errBelow = errors.New("too few mutants killed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "mutate:", err)
		}
		stop()
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.Float64Var(&o.minKill, "min-kill", 0, "minimum `percent` of killed mutants")
	flags.StringVar(&o.explained, "explained", "", "`file` with explanations of survivors")
	flags.IntVar(&o.sample, "sample", 0, "run only `n` mutants, selected by -seed")
	flags.Uint64Var(&o.seed, "seed", 0, "seed of -sample (0: random)")
	flags.IntVar(&o.parallel, "parallel", 2, "number of mutants to run in parallel")
	flags.DurationVar(&o.timeout, "timeout", 0,
		"timeout of the tests of one mutant (0: 5 s plus ten times the duration for the unchanged package)")
	flags.IntVar(&o.memory, "memory", 4096, "limit of the address space of one mutant, in `MiB`")
	flags.StringVar(&o.last, "last", "", "run the (slow) tests that match `regexp` only against mutants that survived the others")
	flags.StringVar(&o.function, "func", "", "run only mutants of the function `name` (Func, Type.Method)")
	flags.BoolVar(&o.list, "list", false, "list the mutants and run nothing")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() != 1 {
		return o, fmt.Errorf("the directory of one package is required, got %q", flags.Args())
	}
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	o.dir = flags.Arg(0)
	return o, nil
}

func run(ctx context.Context, out io.Writer, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	mutants, err := packageMutants(o.dir)
	if err != nil {
		return err
	}
	reasons, err := readExplanations(o.explained)
	if err != nil {
		return err
	}
	if stale := staleKeys(reasons, mutants); len(stale) > 0 {
		return fmt.Errorf("%s explains mutants that do not exist: %q", o.explained, stale)
	}
	mutants = pick(mutants, o)
	if o.list {
		for _, m := range mutants {
			fmt.Fprintln(out, m)
		}
		return nil
	}
	if len(mutants) == 0 {
		return fmt.Errorf("no mutants in function %s", o.function)
	}
	start := time.Now()
	results, err := runAll(ctx, out, o, mutants)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%v, seed %d\n", time.Since(start).Round(time.Second), o.seed)
	return report(out, o, results, reasons)
}

// pick keeps the mutants selected by -func and -sample, in source order. A sample has the mutants with the smallest hashes: a change of the
// package replaces only those of the functions that it changes.
func pick(mutants []mutant, o options) []mutant {
	if o.function != "" {
		mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return m.function != o.function })
	}
	if o.sample <= 0 || o.sample >= len(mutants) {
		return mutants
	}
	order := make([]int, len(mutants))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(mutants[a].hash(o.seed), mutants[b].hash(o.seed)) })
	chosen := order[:o.sample]
	slices.Sort(chosen)
	picked := make([]mutant, 0, o.sample)
	for _, i := range chosen {
		picked = append(picked, mutants[i])
	}
	return picked
}

// hash returns a number that depends on the seed and on what the mutant changes, and not on other functions.
func (m mutant) hash(seed uint64) uint64 {
	h := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", seed, m.function, m.key))
	return binary.BigEndian.Uint64(h[:8])
}

// report prints the survivors and the counts, and fails if the conditions of the flags are not met.
func report(out io.Writer, o options, results []result, reasons map[string]string) error {
	count := map[outcome]int{}
	unexplained := 0
	for _, r := range results {
		count[r.outcome]++
		reason, known := reasons[r.key]
		switch {
		case r.outcome == survived && known:
			fmt.Fprintf(out, "explained %s\n          %s\n", r.mutant, reason)
		case r.outcome == survived:
			unexplained++
			fmt.Fprintf(out, "SURVIVED  %s\n", r.mutant)
		case r.outcome == killed && known:
			fmt.Fprintf(out, "note: explained but killed: %s\n", r.mutant)
		}
	}
	percent := 100.0
	if total := count[killed] + count[survived]; total > 0 {
		percent = 100 * float64(count[killed]) / float64(total)
	}
	fmt.Fprintf(out, "mutants: %d killed, %d survived (%d explained), %d did not compile; %.1f%% killed\n",
		count[killed], count[survived], count[survived]-unexplained, count[invalid], percent)
	if percent < o.minKill {
		return fmt.Errorf("%w: %.1f%% killed, must be at least %.1f%%", errBelow, percent, o.minKill)
	}
	if o.explained != "" && unexplained > 0 {
		return fmt.Errorf("%w: %d survivors without an explanation in %s", errBelow, unexplained, o.explained)
	}
	return nil
}
