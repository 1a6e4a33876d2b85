package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon/notify"
	"github.com/podstead/podstead/internal/view"
	"github.com/podstead/podstead/supervisor/event"
)

func (a *app) notifyCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "notify",
		Short: "Show and test notifications",
		Long: `Show and test the notifiers of the configuration. A notifier runs a command, or posts JSON to a URL, for chosen events.
Both commands read the files of the daemon, and work while it is stopped.`,
		Example: `  # Show what waits to be sent, and the last results
  podstead notify ls

  # Send a test event to all notifiers
  podstead notify test`,
	}, a.notifyListCommand(), a.notifyTestCommand())
}

// notifierState is what notify ls shows.
type notifierState struct {
	Name     string `json:"name"`
	Receiver string `json:"receiver"`
	Pending  int    `json:"pending"`
	notify.State
}

func (a *app) notifyListCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List notifiers with their state",
		Long: `List the notifiers of the configuration: the events that wait to be sent (PENDING), those that were sent, those that were
dropped or missed because there were too many or they were too old (DROPPED), the last success, and the last error. Run it as root.`,
		Example: `  # List notifiers
  podstead notify ls

  # Print the states as JSON
  podstead notify ls -o json`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			return a.listNotifiers(c, format)
		},
	}
	formats(cmd, &format, "json", "yaml")
	return cmd
}

func (a *app) listNotifiers(c *config.Config, format string) error {
	states := make([]notifierState, 0, len(c.Notify))
	for i := range c.Notify {
		n := &c.Notify[i]
		s, err := notify.Load(filepath.Join(c.StateDir, notify.Dir), n.Name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		states = append(states, notifierState{Name: n.Name, Receiver: n.Target(), Pending: len(s.Pending), State: s})
	}
	if format == "json" || format == "yaml" {
		return a.encode(format, states)
	}
	if len(states) == 0 {
		a.note("No notifiers found")
		return nil
	}
	table := [][]string{{"NAME", "RECEIVER", "PENDING", "SENT", "DROPPED", "LAST SUCCESS", "LAST ERROR"}}
	now := time.Now()
	for _, s := range states {
		failure := "<none>"
		if s.LastError != "" {
			failure = ago(now, s.LastFailure) + ": " + s.LastError
		}
		table = append(table, []string{
			s.Name, s.Receiver, strconv.Itoa(s.Pending), strconv.FormatUint(s.Sent, 10), strconv.FormatUint(s.Dropped+s.Missed, 10),
			ago(now, s.LastSuccess), failure,
		})
	}
	return a.screen().Table(table)
}

// ago returns how long ago something was.
func ago(now, at time.Time) string {
	if at.IsZero() {
		return "<never>"
	}
	return view.Age(now.Sub(at)) + " ago"
}

func (a *app) notifyTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test [NAME...]",
		Short: "Send a test event and print the result",
		Long: `Send an event with the reason Test to notifiers of the configuration, once, and print the results. Filters do not apply.
Without a name, all notifiers get it. This command sends the event itself and prints the output of commands: it needs access to the files of
the notifier. The service may have fewer privileges, see the notification of a real event with podstead notify ls.

Exit codes: 0 all were sent, 1 one failed, 3 no such notifier.`,
		Example: `  # Send a test event to all notifiers
  podstead notify test

  # Send a test event to one notifier
  podstead notify test ops`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.config(cmd)
			if err != nil {
				return err
			}
			return a.testNotifiers(cmd.Context(), c, args)
		},
	}
}

func (a *app) testNotifiers(ctx context.Context, c *config.Config, names []string) error {
	known := map[string]*config.Notifier{}
	all := make([]string, 0, len(c.Notify))
	for i := range c.Notify {
		known[c.Notify[i].Name] = &c.Notify[i]
		all = append(all, c.Notify[i].Name)
	}
	if len(names) == 0 {
		names = all
	}
	if len(names) == 0 {
		return errors.New("the configuration has no notifiers")
	}
	var errs []error
	for _, name := range names {
		n := known[name]
		if n == nil {
			missing := fmt.Errorf("notifier %q: not found in the configuration", name)
			errs = append(errs, &failure{status: statusNotFound, err: missing})
			continue
		}
		now := time.Now()
		e := event.Event{Time: now, Level: api.EventNormal, Kind: "Test", Reason: "Test", Message: "Test of notifier " + name}
		m := notify.NewMessage(name, "test-"+strconv.FormatInt(now.UnixNano(), 10), &e)
		if err := notify.Send(ctx, n, &m, a.err); err != nil {
			errs = append(errs, fmt.Errorf("notifier %q: %w", name, err))
			continue
		}
		fmt.Fprintf(a.out, "notifier %q: sent to %s\n", name, n.Target())
	}
	return errors.Join(errs...)
}
