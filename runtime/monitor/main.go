package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/cgroup"
)

// Name is the name of the program.
const Name = "podstead-monitor"

// The roles of the program. Its first argument is one of them.
const (
	roleKeeper  = "keeper"
	roleMonitor = "monitor"
	roleVersion = "version"
)

// protectedScore is the OOM score of monitor and keeper: the kernel kills neither.
const protectedScore = -1000

// reads are the formats of records that this program reads.
var reads = []int{Format - 1, Format}

// programVersion is what a program says of itself.
type programVersion struct {
	Version string `json:"version"`
	Format  int    `json:"format"`
	Reads   []int  `json:"reads"`
}

// options are the arguments of keeper and monitor.
type options struct {
	role, dir string
	version   string        // of this program
	cgroup    string        // that the keeper joins, relative to the root of the hierarchies; empty: that of its starter
	score     *int          // the OOM score of the starter; nil: this process has it
	protected bool          // this process has the protected score
	unused    time.Duration // [unusedTime] in tests; 0: the constant
	replaced  string        // the program that this monitor was executed from in place, which the keeper must execute too
}

// Main is the main function of keeper and monitor. The version is that of the program; empty: it is in the build information. It returns
// the exit code.
func Main(ctx context.Context, version string, args []string) int {
	o, err := parse(args)
	o.version = cmp.Or(version, buildVersion())
	if err == nil && o.role == roleVersion {
		err = json.NewEncoder(os.Stdout).Encode(programVersion{Version: o.version, Format: Format, Reads: reads})
	} else if err == nil {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Name, err)
		return 1
	}
	return 0
}

func parse(args []string) (o options, err error) {
	if len(args) < 2 || !slices.Contains([]string{roleKeeper, roleMonitor, roleVersion}, args[1]) {
		return o, fmt.Errorf("this program is started by the podstead daemon: the first argument must be %s, %s or %s",
			roleKeeper, roleMonitor, roleVersion)
	}
	o.role = args[1]
	set := flag.NewFlagSet(Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&o.dir, "state", "", "")
	set.StringVar(&o.cgroup, "cgroup", "", "")
	set.StringVar(&o.replaced, "replaced", "", "")
	set.DurationVar(&o.unused, "unused", 0, "")
	set.Func("score", "", func(s string) error {
		n, err := strconv.Atoi(s)
		o.score = &n
		return err
	})
	if err := set.Parse(args[2:]); err != nil {
		return o, err
	}
	if o.unused < 0 {
		return o, fmt.Errorf("-unused %v: must not be negative", o.unused)
	}
	if o.role != roleVersion && !filepath.IsAbs(o.dir) {
		return o, fmt.Errorf("-state %q: must be an absolute path", o.dir)
	}
	return o, nil
}

// buildVersion returns the version of the program from its build information.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// run prepares the process and runs as keeper or monitor.
func run(ctx context.Context, o options) error {
	// Signals are handled by the loops, or not at all. They are not ignored, because that would be inherited by containers.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
	unix.Umask(0o022)
	if err := os.WriteFile("/proc/self/comm", []byte(Name), 0); err != nil { // a process that was executed as self would be named exe
		return fmt.Errorf("set name of process: %w", err)
	}
	if o.cgroup != "" {
		if err := cgroup.Join(o.cgroup); err != nil {
			return err
		}
	}
	if o.score == nil {
		score, err := readScore()
		if err != nil {
			return err
		}
		o.score = &score
	}
	if err := becomeSubreaper(); err != nil {
		return err
	}
	if err := writeScore(protectedScore); err == nil {
		o.protected = true
	} else if o.role == roleKeeper {
		logf("the kernel may kill this process when memory is short: %v", err)
	}
	if o.role == roleKeeper {
		return runKeeper(o)
	}
	base := func() context.Context { return ctx }
	return runMonitor(o, signals, base) //nolint:contextcheck // work of the loop has the context of the process
}

func becomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
}

// execute executes a program in this process. It returns on errors only.
//
// The runtime of Go raises the soft limit of open files of this process, and sets it back for children and before it executes a program.
func execute(program string, args []string, handover int) error {
	err := syscall.Exec(program, args, environment(handover))
	var limit unix.Rlimit
	if limitErr := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &limit); limitErr != nil {
		return errors.Join(err, limitErr)
	}
	limit.Cur = limit.Max
	return errors.Join(err, unix.Prlimit(0, unix.RLIMIT_NOFILE, &limit, nil))
}

const scoreFile = "/proc/self/oom_score_adj"

func readScore() (int, error) {
	text, err := os.ReadFile(scoreFile)
	if err != nil {
		return 0, fmt.Errorf("read OOM score: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

func writeScore(score int) error {
	if err := os.WriteFile(scoreFile, []byte(strconv.Itoa(score)), 0); err != nil {
		return fmt.Errorf("set OOM score: %w", err)
	}
	return nil
}
