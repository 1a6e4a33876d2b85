package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/podstead/podstead/spec"
)

// DefaultPath is where the file is looked for that nobody names.
const DefaultPath = "/etc/podstead/podstead.toml"

// Sources are where settings come from.
type Sources struct {
	// File is the path of podstead.toml; empty: [DefaultPath], which need not be there.
	File string
	// Flag returns the value of a flag that was given.
	Flag func(name string) (value string, given bool)
	// Env returns the value of an environment variable, as [os.LookupEnv].
	Env func(name string) (value string, set bool)
}

// Load reads all settings. What is wrong with the file is a [spec.Problems].
func Load(from Sources) (*Config, error) {
	c := &Config{}
	list := settings()
	for i := range list {
		if s := &list[i]; s.Default != "" {
			if err := s.set(c, s.Default); err != nil {
				return nil, fmt.Errorf("default of %s: %w", s.Key, err)
			}
		}
	}
	if err := c.readFile(from.File, list); err != nil {
		return nil, err
	}
	for i := range list {
		s := &list[i]
		if err := s.override(c, from); err != nil {
			return nil, err
		}
	}
	if c.Socket == "" {
		c.Socket = filepath.Join(c.RunDir, "podstead.sock")
	}
	return c, nil
}

func (c *Config) readFile(path string, list []Setting) error {
	named := path != ""
	if !named {
		path = DefaultPath
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	file := spec.Decode(path, data, c)
	for i := range list {
		s := &list[i]
		field := s.field(c)
		if !file.Has(field) {
			continue
		}
		if err := s.refused(c); err != nil {
			file.Bad(field, err.Error(), "")
		}
	}
	if problems := file.Problems(); len(problems) > 0 {
		return problems
	}
	return nil
}

// override takes the value of the environment, and that of a flag before it.
func (s *Setting) override(c *Config, from Sources) error {
	text, origin := "", ""
	if from.Env != nil {
		if v, set := from.Env(s.Env); set {
			text, origin = v, s.Env
		}
	}
	if from.Flag != nil {
		if v, given := from.Flag(s.Flag); given {
			text, origin = v, "--"+s.Flag
		}
	}
	if origin == "" {
		return nil
	}
	err := s.set(c, text)
	if err == nil {
		err = s.refused(c)
	}
	if err != nil {
		return fmt.Errorf("%s=%q: %w", origin, text, err)
	}
	return nil
}
