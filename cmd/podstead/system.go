package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/view"
)

func (a *app) systemCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "system",
		Short: "Show and free disk space",
		Long: `Show what Podstead has on the disk, and remove what nothing uses. The daemon removes unused images itself when the disk is
nearly full, see images.gcHighPercent in the configuration.`,
		Example: `  # Show what is on the disk and what could be freed
  podstead system df

  # List what a prune would remove
  podstead system prune --dry-run`,
	}, a.systemUsageCommand(), a.systemPruneCommand())
	cmd.AddCommand(hintCommands(systemHints)...)
	return cmd
}

func (a *app) systemUsageCommand() *cobra.Command {
	var format string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "df",
		Short: "Show disk usage",
		Long: `Show what Podstead has on the disk: compressed images, their unpacked layers, writable layers of containers, persistent
volumes, pod volumes, logs, state and the journal of events. RECLAIMABLE is what podstead system prune --all --volumes frees.`,
		Example: `  # Show the disk usage
  podstead system df

  # Show it for each image, container and persistent volume
  podstead system df -v

  # Print it as JSON
  podstead system df -o json`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withClient(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			done := a.waiting("Measuring the disk usage")
			u, err := c.DiskUsage(cmd.Context())
			done()
			if err != nil {
				return err
			}
			if format == "json" || format == "yaml" {
				return a.encode(format, u)
			}
			return a.printUsage(&u, verbose)
		}),
	}
	formats(cmd, &format, "json", "yaml")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show each image, container and persistent volume")
	return cmd
}

func (a *app) printUsage(u *api.DiskUsage, verbose bool) error {
	tables := [][][]string{view.DiskUsageTable(u)}
	if verbose {
		tables = append(tables, view.ImageUsageTable(u.Images), view.ContainerUsageTable(u.Containers), view.VolumeUsageTable(u.Volumes))
	}
	for n, table := range tables {
		if n > 0 {
			fmt.Fprintln(a.out)
		}
		if err := a.screen().Table(table); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.out, "\n%s\n", view.FilesystemLine(&u.Filesystem))
	return nil
}

func (a *app) systemPruneCommand() *cobra.Command {
	var q api.SystemPrune
	var yes bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove what nothing uses",
		Long: `Remove what nothing uses, and print how much disk space that has freed: containers, pod volumes and old logs of pods that
have finished, images that no pod, pod file or generation uses, and content that belongs to no image. The status of finished pods is kept,
and the end of their logs. Images that were pulled or imported by hand are kept unless --all is given, and persistent volumes unless
--volumes is given. On a terminal, it asks before it removes anything.`,
		Example: `  # List what would be removed
  podstead system prune --dry-run

  # Remove what was not used for a week, without a question
  podstead system prune --older-than 168h --yes

  # Remove also images that were pulled by hand, and persistent volumes with their data
  podstead system prune --all --volumes --yes`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.pruneSystem(cmd, q, yes) },
	}
	cmd.Flags().BoolVarP(&q.All, "all", "a", false, "remove also images that were pulled or imported by hand")
	cmd.Flags().BoolVar(&q.Volumes, "volumes", false, "remove also persistent volumes that no pod uses, and their data permanently")
	cmd.Flags().DurationVar(&q.OlderThan, "older-than", 0,
		"keep pods that finished, and images that were used, within this `duration`, such as 24h")
	cmd.Flags().BoolVar(&q.DryRun, "dry-run", false, "print what would be removed, and remove nothing")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (a *app) pruneSystem(cmd *cobra.Command, q api.SystemPrune, yes bool) error {
	switch {
	case q.OlderThan < 0:
		return usage(cmd, "--older-than must not be negative")
	case q.Volumes && q.OlderThan > 0:
		return usage(cmd, "--volumes cannot be combined with --older-than: it is not known when a persistent volume was used")
	}
	c, err := a.client(cmd)
	if err != nil {
		return err
	}
	if f, ok := a.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) && !yes && !q.DryRun {
		agreed, err := a.confirmPrune(q)
		if err != nil || !agreed {
			return err
		}
	}
	defer a.waiting("Removing what nothing uses")()
	pruned, err := c.PruneSystem(cmd.Context(), q)
	a.printPruned(&pruned, q.DryRun, err)
	return err
}

// confirmPrune asks for agreement, as docker system prune.
func (a *app) confirmPrune(q api.SystemPrune) (bool, error) {
	images := "images that nothing uses"
	if !q.All {
		images += ", except those that were pulled or imported by hand"
	}
	parts := []string{"containers, pod volumes and old logs of finished pods", images}
	if q.Volumes {
		parts = append(parts, "persistent volumes that no pod uses, and their data")
	}
	fmt.Fprintf(a.err, "This removes permanently:\n  - %s\n", strings.Join(parts, "\n  - "))
	if q.OlderThan > 0 {
		fmt.Fprintf(a.err, "if it was not used for %s.\n", view.Age(q.OlderThan.Truncate(time.Second)))
	}
	fmt.Fprint(a.err, "Continue? [y/N] ")
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read answer: %w", err)
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

func (a *app) printPruned(pruned *api.SystemPruned, dryRun bool, err error) {
	done, freed := "removed", "freed"
	if dryRun {
		done, freed = "removed (dry run)", "would be freed"
	}
	for _, item := range pruned.Items {
		switch item.Type {
		case "content":
			fmt.Fprintf(a.out, "content of no image %s, %s\n", done, view.Size(item.Bytes))
		case "pod":
			fmt.Fprintf(a.out, "containers, volumes and old logs of pod/%s %s, %s\n", item.Name, done, view.Size(item.Bytes))
		default:
			fmt.Fprintf(a.out, "%s/%s %s, %s\n", item.Type, item.Name, done, view.Size(item.Bytes))
		}
	}
	if len(pruned.Items) == 0 && err == nil {
		a.note("nothing to remove")
		return
	}
	if len(pruned.Items) > 0 {
		fmt.Fprintf(a.out, "%s %s\n", view.Size(pruned.Freed), freed)
	}
}
