package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/cmd/podstead/internal/connect"
	"github.com/podstead/podstead/cmd/podstead/internal/live"
	"github.com/podstead/podstead/cmd/podstead/internal/ondemand"
	"github.com/podstead/podstead/cmd/podstead/internal/show"
	"github.com/podstead/podstead/cmd/podstead/internal/tui"
)

func (a *app) tuiCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tui",
		Short: "Show pods on a screen of the terminal",
		Long: `Show the pods of this host, those that need a person first, and follow their changes: states and restarts, why pods are in
their state, timelines, last exits, logs. Most keys are those of k9s. "?" lists them, "q" quits.

Restart, stop, start and a shell in a container show the command of podstead that does the same, and ask before they run it.
Over the read-only socket, the daemon rejects them. If the daemon stops, the screen waits for the next one, and starts none.`,
		Example: `  # Show the pods of this host
  podstead tui

  # Show the pods of another host
  ssh -t edge1 podstead tui`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !connect.IsTerminal(a.in) || !a.isTerminal() || slices.Contains([]string{"", "dumb"}, os.Getenv("TERM")) {
				return &failure{status: statusUsage, err: errors.New("tui requires a terminal as stdin and stdout"), hints: []string{
					"watch pods with podstead get --watch, and what they use with podstead top --watch",
				}}
			}
			s, err := a.connect(cmd)
			if err != nil {
				return err
			}
			if err := a.reach(cmd.Context(), s); err != nil {
				return err
			}
			daemon := a.running(client.New(s.Client.Socket(), commandPath(cmd))) // a screen that stays open starts no daemon
			defer daemon.Close()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
			defer stop()
			context.AfterFunc(ctx, stop) // the next signal has its default action
			err = tui.Run(ctx, a.tuiOptions(daemon, s))
			if ctx.Err() != nil { // the user has requested it
				return cmd.Context().Err()
			}
			return err
		},
	}
}

func (a *app) tuiOptions(daemon *client.Client, s *ondemand.Starter) *tui.Options {
	o := &tui.Options{
		Source:   live.New(daemon),
		Describe: func(ctx context.Context, name string) (string, error) { return describePod(ctx, daemon, name) },
		Manifest: func(ctx context.Context, name string) (string, error) {
			p, err := daemon.Pod(ctx, name)
			if err != nil {
				return "", err
			}
			text, err := encoded("yaml", p)
			return string(text), err
		},
		Restart: func(ctx context.Context, name, uid string) error {
			_, err := daemon.Restart(ctx, name, uid, "")
			return err
		},
		Stop: func(ctx context.Context, name, uid string) error {
			return daemon.Stop(ctx, name, client.StopOptions{UID: uid})
		},
		Start: func(ctx context.Context, name, uid string) error {
			_, err := daemon.Start(ctx, name, uid)
			return err
		},
		Shell: func(ctx context.Context, pod, container string) *exec.Cmd {
			args := append(slices.Clone(s.Args[2:]), "exec", "--stdin", "--tty", pod) // the flags of this command, see [app.connect]
			if container != "" {
				args = append(args, "--container", container)
			}
			cmd := exec.CommandContext(ctx, "/proc/self/exe", append(args, "--", "sh")...)
			cmd.Args[0] = "podstead"
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it restores the terminal
			cmd.WaitDelay = 10 * time.Second
			return cmd
		},
		Colour: a.colour(),
	}
	o.In, _ = a.in.(*os.File) // it is a terminal
	o.Out, _ = a.out.(*os.File)
	return o
}

// describePod returns the page of a pod.
func describePod(ctx context.Context, c *client.Client, name string) (string, error) {
	list, err := c.RedactedPods(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(list.Items, func(p api.Pod) bool { return p.Metadata.Name == name })
	if i < 0 {
		return "", fmt.Errorf("no such pod %q", name)
	}
	in, err := describeInput(ctx, c, &list.Items[i])
	if err != nil {
		return "", err
	}
	if uid := list.Items[i].Metadata.UID; uid != "" { // not a file that is refused
		if s, err := c.Stats(ctx, name); err == nil && len(s.Pods) == 1 { // the page shows the rest
			in.Stats = &s.Pods[0]
		}
	}
	var page bytes.Buffer
	err = show.Describe(&page, in, time.Now())
	return page.String(), err
}
