package main

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/spec"
)

// commandName returns the name of a command without the name of the program.
func commandName(cmd *cobra.Command) string {
	return strings.TrimPrefix(commandPath(cmd), cmd.Root().Name()+" ")
}

// commandPath returns the words of a command as the user wrote them: podstead up, which is another name of podstead run.
func commandPath(cmd *cobra.Command) string {
	if as := cmd.CalledAs(); as != "" && cmd.HasParent() {
		return cmd.Parent().CommandPath() + " " + as
	}
	return cmd.CommandPath()
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

// quoted returns a list of quoted names.
func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strconv.Quote(name)
	}
	return strings.Join(list, ", ")
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
	cmd.Flags().IntVar(seconds, name, -1,
		"`seconds` between the stop signal and SIGKILL, at least 1 (default terminationGracePeriodSeconds of the pod)")
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

// gracePeriod returns the duration of a --grace-period, nil if it is negative. As in kubectl, 0 becomes 1 second: only --force kills
// immediately.
func gracePeriod(n int) *time.Duration {
	if n < 0 {
		return nil
	}
	d := time.Duration(min(max(n, 1), math.MaxInt32)) * time.Second // the limit of terminationGracePeriodSeconds
	return &d
}

// isImage reports whether an argument looks like an image reference rather than a pod file.
func isImage(arg string) bool {
	_, err := os.Stat(arg)
	return errors.Is(err, fs.ErrNotExist) && arg != spec.Stdin && !strings.HasSuffix(arg, ".toml") && !strings.HasSuffix(arg, ".yaml") &&
		!strings.HasSuffix(arg, ".yml") && !strings.HasSuffix(arg, ".json") && !strings.HasPrefix(arg, ".") && !strings.HasPrefix(arg, "/")
}

// imageHint is the hint to arguments that look like images.
const imageHint = "podstead runs pod files, not images: set the image in a pod file, such as examples/hello.toml"

// hide leaves flags out of the help: earlier names, and habits from other tools that change nothing here. TestOtherFlags runs all of them.
func hide(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		cmd.Flag(name).Hidden = true
	}
}

// startingWith completes values of a flag. After a value that ends with = the user continues.
func startingWith(prefix string, values ...string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	var list []string
	for _, value := range values {
		if strings.HasPrefix(value, prefix) {
			list = append(list, value)
		}
	}
	if len(list) == 1 && strings.HasSuffix(list[0], "=") {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return list, directive
}

// completeFlag sets the values that a flag is completed with.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return startingWith(prefix, values...)
	})
}

// completeFiles completes names of pod files.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"toml", "yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}
