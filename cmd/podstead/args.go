package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/spec"
)

// commandName returns the name of a command without the name of the program.
func commandName(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// noArguments rejects arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(cmd, "%s accepts no arguments, got %q", commandName(cmd), args[0])
	}
	return nil
}

// minOneArgument requires at least one argument; what names it in the error.
func minOneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(cmd, "%s requires %s", commandName(cmd), what)
		}
		return nil
	}
}

// oneArgument requires exactly one argument; what names it in the error.
func oneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage(cmd, "%s requires one %s, got %d arguments", commandName(cmd), what, len(args))
		}
		return nil
	}
}

// maxOnePod accepts at most one pod, in the forms of kubectl.
func maxOnePod(cmd *cobra.Command, args []string) error {
	var s selection
	if err := s.read(cmd, args); err != nil {
		return err
	}
	if len(s.names) > 1 {
		return usage(cmd, "%s accepts at most one pod, got %s", commandName(cmd), quoted(s.names))
	}
	return nil
}

// onePod requires the name of one pod, in the forms of kubectl.
func onePod(cmd *cobra.Command, args []string) error {
	if err := maxOnePod(cmd, args); err != nil {
		return err
	}
	if podName(cmd, args) == "" {
		return usage(cmd, "%s requires a pod", commandName(cmd))
	}
	return nil
}

// podName returns the name in arguments that [onePod] has accepted.
func podName(cmd *cobra.Command, args []string) string {
	var s selection
	if err := s.read(cmd, args); err != nil || len(s.names) == 0 {
		return ""
	}
	return s.names[0]
}

// quoted returns a list of quoted names.
func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strconv.Quote(name)
	}
	return strings.Join(list, ", ")
}

// formats adds the flag -o and rejects formats that are not supported. A format that ends with = has an expression after it.
func formats(cmd *cobra.Command, format *string, supported ...string) {
	list := strings.Join(supported, ", ")
	cmd.Flags().StringVarP(format, "output", "o", "", "output `format`: "+list+" (default text)")
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		is := func(s string) bool { return *format == s || strings.HasSuffix(s, "=") && strings.HasPrefix(*format, s) }
		if *format != "" && !slices.ContainsFunc(supported, is) {
			return usage(cmd, "output format %q is not supported: must be one of %s", *format, list)
		}
		if check != nil {
			return check(cmd, args)
		}
		return nil
	}
	completeFlag(cmd, "output", supported...)
}

// canBePod reports whether an argument can be the name of a pod: an image with a tag, a digest, or a registry with a path cannot.
func canBePod(arg string) bool {
	return len(validation.IsDNS1123Subdomain(strings.TrimPrefix(arg, "pod/"))) == 0
}

// sinceFlags are the flags for a time in the past.
type sinceFlags struct {
	age time.Duration
	at  string
}

func (s *sinceFlags) flags(cmd *cobra.Command, what string) {
	cmd.Flags().DurationVar(&s.age, "since", 0, "show "+what+" newer than this `duration`, such as 10m (default all)")
	cmd.Flags().StringVar(&s.at, "since-time", "", "show "+what+" since this `time`, such as 2026-01-02T15:04:05Z (default all)")
}

// time returns the time of the flags; zero: there is none.
func (s *sinceFlags) time(cmd *cobra.Command, now time.Time) (t time.Time, err error) {
	set := cmd.Flags().Changed
	switch {
	case set("since") && set("since-time"):
		return t, usage(cmd, "--since and --since-time cannot be combined")
	case s.age < 0:
		return t, usage(cmd, "--since %v: must not be negative", s.age)
	case s.age > 0:
		return now.Add(-s.age), nil
	case !set("since-time"):
		return t, nil
	}
	if t, err = time.Parse(time.RFC3339, s.at); err != nil {
		return t, usage(cmd, "--since-time %q: must be a time, such as 2026-01-02T15:04:05Z", s.at)
	}
	return t, nil
}

// graceFlag adds the flag --grace-period. A negative value stands for the grace period of the pod.
func graceFlag(cmd *cobra.Command, seconds *int) {
	const name = "grace-period"
	cmd.Flags().IntVar(seconds, name, -1, "`seconds` between the stop signal and SIGKILL, at least 1 (default terminationGracePeriodSeconds of the pod)")
	cmd.Flags().Lookup(name).DefValue = "0" // keeps "(default -1)" out of the help
}

// graceFlags are the flags of commands that stop pods.
type graceFlags struct {
	seconds int
	now     bool // within 1 second
	force   bool // without a grace period
}

func (g *graceFlags) flags(cmd *cobra.Command) {
	graceFlag(cmd, &g.seconds)
	cmd.Flags().BoolVar(&g.force, "force", false, "kill containers immediately, without a grace period")
}

// period returns the grace period of the flags, nil for the one of the pod.
func (g *graceFlags) period(cmd *cobra.Command) (*time.Duration, error) {
	set := cmd.Flags().Changed("grace-period")
	switch {
	case g.now && set:
		return nil, usage(cmd, "--now and --grace-period cannot be combined")
	case g.now && g.force:
		return nil, usage(cmd, "--now and --force cannot be combined")
	case g.force && g.seconds > 0:
		return nil, usage(cmd, "--force and a --grace-period greater than 0 cannot be combined")
	case g.force:
		return new(time.Duration), nil
	case g.now:
		return gracePeriod(1), nil
	}
	return gracePeriod(g.seconds), nil
}

// isImage reports whether an argument looks like an image reference rather than a pod file.
func isImage(arg string) bool {
	_, err := os.Stat(arg)
	return errors.Is(err, fs.ErrNotExist) && arg != spec.Stdin && !strings.HasSuffix(arg, ".toml") && !strings.HasSuffix(arg, ".yaml") &&
		!strings.HasSuffix(arg, ".yml") && !strings.HasSuffix(arg, ".json") && !strings.HasPrefix(arg, ".") && !strings.HasPrefix(arg, "/")
}
