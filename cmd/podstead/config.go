package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/spec"
)

// config loads the configuration of a client. It warns of a file that cannot be used, and goes on with the last valid one: pods and the
// daemon run on, and a person must be able to look at them.
func (a *app) config(cmd *cobra.Command) (*config.Config, error) {
	c, err := a.loadConfig(cmd, nil)
	if invalid, ok := errors.AsType[*config.FileError](err); ok {
		a.warnConfig(invalid, c.Socket)
		return c, checkSockets(c)
	}
	return c, err
}

// warnConfig warns of a configuration file that cannot be used, once. If the daemon may use another one, it names the socket that is tried.
func (a *app) warnConfig(invalid *config.FileError, socket string) {
	if a.warned {
		return
	}
	a.warned = true
	first, more, _ := strings.Cut(invalid.Error(), "\n")
	if more != "" {
		first += fmt.Sprintf(" (and %d more)", strings.Count(more, "\n")+1)
	}
	state, instead := "is invalid", "what is valid in it is used"
	if errors.Is(invalid, fs.ErrPermission) {
		state, instead = "cannot be read", "defaults are used"
	}
	switch {
	case invalid.LastValid:
		instead = "the last valid file is used"
	case invalid.Hidden:
		instead += " with the socket " + socket
	}
	a.note("warning: the configuration file %s, %s: %s", state, instead, first)
	if problems := spec.Problems(nil); errors.As(invalid.Err, &problems) && len(problems) > 0 && problems[0].Hint != "" {
		a.hint(problems[0].Hint)
	}
}

// configFile returns the path of the configuration file that a flag or the environment names; empty: none does.
func configFile(cmd *cobra.Command) (string, error) {
	file, err := cmd.Flags().GetString("config")
	return cmp.Or(file, os.Getenv("PODSTEAD_CONFIG")), err
}

// loadConfig loads the configuration like [config.Load]. The check is [config.Sources.Check].
func (a *app) loadConfig(cmd *cobra.Command, check func(*config.Config) error) (*config.Config, error) {
	file, err := configFile(cmd)
	if err != nil {
		return nil, err
	}
	user, err := a.userDefaults(cmd, file)
	if err != nil {
		return nil, err
	}
	a.user = user
	c, err := config.Load(config.Sources{
		User: user,
		File: file,
		Env:  os.LookupEnv,
		Flag: func(name string) (string, bool) {
			f := cmd.Flags().Lookup(name)
			if f == nil || !f.Changed {
				return "", false
			}
			return f.Value.String(), true
		},
		Check: check,
	})
	if err != nil {
		return c, &failure{status: statusUsage, err: err}
	}
	return c, checkSockets(c)
}

func checkSockets(c *config.Config) error {
	if c.HasReadOnlySocket() {
		if err := api.CheckSocket(c.ReadOnlySocket); err != nil {
			return err
		}
	}
	return api.CheckSocket(c.Socket)
}

// daemonLog returns the path of the log of daemons that are started on demand.
func daemonLog(c *config.Config) string { return filepath.Join(c.StateDir, "daemon.log") }

// settingFlag holds the text of a setting's flag. Package config parses it.
type settingFlag struct{ text, kind string }

// String returns the text.
func (f *settingFlag) String() string { return f.text }

// Set sets the text.
func (f *settingFlag) Set(text string) error {
	f.text = text
	return nil
}

// Type is the placeholder for the value in the help.
func (f *settingFlag) Type() string { return f.kind }

// settingHelp returns the help of a setting's flag, with its default and its environment variable.
func settingHelp(s *config.Setting) string {
	if s.DefaultHelp == "" {
		return s.Help + " (" + s.Env + ")"
	}
	return s.Help + " (default " + s.DefaultHelp + "; " + s.Env + ")"
}
