package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/doctor"
	"github.com/podstead/podstead/internal/supportbundle"
	"github.com/podstead/podstead/internal/view"
)

// bundleFlags are the flags of support-bundle.
type bundleFlags struct {
	output string
	noLogs bool
	tail   int
}

func (a *app) supportBundleCommand() *cobra.Command {
	var f bundleFlags
	cmd := &cobra.Command{
		Use:   "support-bundle",
		Short: "Collect information for a bug report",
		Long: `Write an archive (tar.gz) for a bug report: versions, the effective configuration, the results of doctor, a list of
Podstead's files with their sizes, the log of the daemon, and for each pod its status, statistics, events, explanations and
the logs of its containers. Every part is limited in size and time. A part that is not available is a note in manifest.json.

Values of secrets are replaced by [redacted] in all files, also in logs, probe output and messages, and in base64. So are values of
environment variables and config maps in the definitions of pods, but not where containers print them. Values that a secret had
earlier, and values shorter than four characters, cannot be recognized. Names, arguments, annotations, addresses and logs are
in the archive: check it before you send it.

No daemon is started. Without a daemon, the archive has what can be read from files: also events and logs of containers,
but no status and no explanations. Run the command as root: for other users the logs are left out.`,
		Example: `  # Write an archive to the current directory
  podstead support-bundle

  # Write an archive without the logs of containers
  podstead support-bundle --no-logs -o bundle.tar.gz

  # List the files of an archive without storing it
  podstead support-bundle -o - | tar -tzv`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.supportBundle(cmd, &f) },
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "`file` to write, - for standard output (default podstead-support-TIME.tar.gz)")
	cmd.Flags().BoolVar(&f.noLogs, "no-logs", false, "leave out the logs of containers")
	cmd.Flags().IntVar(&f.tail, "tail", 500, "`number` of lines from the end of the log of each run of a container")
	return cmd
}

func (a *app) supportBundle(cmd *cobra.Command, f *bundleFlags) error {
	switch {
	case f.tail < 1:
		return usage(cmd, "--tail %d: must be at least 1", f.tail)
	case f.noLogs && cmd.Flags().Changed("tail"):
		return usage(cmd, "--no-logs and --tail cannot be combined")
	case f.output == "-" && a.isTerminal():
		return usage(cmd, "--output -: standard output is a terminal")
	}
	c, err := a.loadConfig(cmd, nil)
	invalid, _ := errors.AsType[*config.FileError](err)
	if err != nil && invalid == nil {
		return err
	}
	done := a.waiting("Collecting information")
	daemon, now := a.running(client.New(c.Socket, commandPath(cmd))), time.Now()
	archive, manifest, err := supportbundle.Collect(cmd.Context(), supportbundle.Options{
		Config: c, Client: daemon, NoLogs: f.noLogs, Tail: f.tail, HostRoot: a.hostRoot, Now: now,
		Versions: func(ctx context.Context) any {
			v, _ := versionsOf(ctx, c, daemon) // with an error, the version of the daemon is missing
			return v
		},
		Doctor: func(ctx context.Context) any { return doctor.Run(ctx, c, invalid, daemon, version, socketUnits(ctx)) },
	})
	done()
	if err != nil {
		return fmt.Errorf("collect information: %w", err)
	}
	return a.writeBundle(f.output, archive, &manifest)
}

// writeBundle writes an archive, and prints what the user needs to know about it.
func (a *app) writeBundle(path string, archive []byte, m *supportbundle.Manifest) error {
	if path == "-" {
		if _, err := a.out.Write(archive); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
	} else {
		if path == "" {
			path = "podstead-support-" + m.Created.Format("20060102T150405Z") + ".tar.gz"
		}
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() { // also a link, such as /dev/stdout: it would be replaced
			return &failure{
				status: statusFailed, err: fmt.Errorf("write %s: not a regular file", path),
				hints: []string{"write to standard output with -o -"},
			}
		}
		if err := atomicfile.Write(path, archive, 0o600); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "%s (%d files, %s)\n", path, len(m.Files), view.Size(uint64(len(archive))))
	}
	for _, note := range m.Notes {
		a.note("%s", note)
	}
	a.note("check the archive before you send it: values of secrets are redacted, but names, arguments, annotations, addresses and logs " +
		"are in it")
	return nil
}
