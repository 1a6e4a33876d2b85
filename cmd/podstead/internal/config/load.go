package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

const (
	// DefaultPath is the path of the configuration file in the default configuration directory.
	DefaultPath = defaultDir + "/" + fileName
	// defaultDir is the default configuration directory, and fileName the name of the configuration file in it.
	defaultDir, fileName = "/etc/podstead", "podstead.toml"
	// socketName is the default name of the API socket in the runtime directory.
	socketName = "podstead.sock"
	// podsName is the default name of the pods directory in the configuration directory.
	podsName = "pods.d"
	// authName is the default name of the credentials file in the configuration directory.
	authName = "auth.json"
	// imagesName is the default name of the image directory in the state directory.
	imagesName = "images"
)

// NoSocket is the value of a socket that the daemon does not have.
const NoSocket = "none"

// HasReadOnlySocket reports whether the daemon has a read-only socket.
func (c *Config) HasReadOnlySocket() bool {
	return c.ReadOnlySocket != "" && c.ReadOnlySocket != NoSocket
}

// readOnlySocket returns the default path of the read-only socket: podstead-ro.sock for podstead.sock. The longest paths of sockets have
// none.
func readOnlySocket(socket string) string {
	path := strings.TrimSuffix(socket, ".sock") + "-ro.sock"
	if api.CheckSocket(path) != nil {
		return NoSocket
	}
	return path
}

// Sources are the sources of settings.
type Sources struct {
	// File is the path of podstead.toml, which must exist. Empty: the one in the configuration directory of Flag or Env, by default
	// [DefaultPath], which may be missing.
	File string
	// Flag returns the value of a flag, and whether it is set; nil: there are no flags.
	Flag func(name string) (value string, set bool)
	// Env returns the value of an environment variable, and whether it is set, like [os.LookupEnv]; nil: there are no variables.
	Env func(name string) (value string, set bool)
}

// Load loads the configuration. The problems of the file are returned as [spec.Problems].
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
	if err := c.readFile(from.File, from.configDir(list), list); err != nil {
		return nil, err
	}
	for i := range list {
		s := &list[i]
		if err := s.override(c, from); err != nil {
			return nil, err
		}
	}
	if c.Images.GCLowPercent > c.Images.GCHighPercent {
		return nil, fmt.Errorf("images.gcLowPercent = %d: must not exceed images.gcHighPercent = %d", c.Images.GCLowPercent, c.Images.GCHighPercent)
	}
	if err := c.checkMetrics(); err != nil {
		return nil, err
	}
	if c.Socket == "" {
		c.Socket = filepath.Join(c.RunDir, socketName)
	}
	if c.ReadOnlySocket == "" {
		c.ReadOnlySocket = readOnlySocket(c.Socket)
	}
	if c.Pods.Dir == "" {
		c.Pods.Dir = filepath.Join(c.ConfigDir, podsName)
	}
	if c.Images.AuthFile == "" {
		c.Images.AuthFile = filepath.Join(c.ConfigDir, authName)
	}
	if c.Images.Dir == "" {
		c.Images.Dir = filepath.Join(c.StateDir, imagesName)
	}
	return c, nil
}

// File returns the path of the file that was loaded; empty: there was none.
func (c *Config) File() string { return c.file }

// configDir returns the configuration directory without the file, which can set another one for what it does not contain itself.
func (from *Sources) configDir(list []Setting) string {
	c := Config{ConfigDir: defaultDir}
	for i := range list {
		if s := &list[i]; s.field(&c) == &c.ConfigDir {
			_ = s.override(&c, *from) // Load reports it
		}
	}
	return c.ConfigDir
}

func (c *Config) readFile(path, configDir string, list []Setting) error {
	required := path != ""
	path = cmp.Or(path, filepath.Join(configDir, fileName))
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !required {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	c.file = path
	file := spec.Decode(path, data, c)
	for i := range list {
		s := &list[i]
		field := s.field(c)
		if !file.Has(field) {
			continue
		}
		if err := s.validate(c); err != nil {
			file.Bad(field, err.Error(), "")
		}
	}
	c.checkVerify(file)
	c.checkNotify(file)
	if problems := file.Problems(); len(problems) > 0 {
		return problems
	}
	return nil
}

// override sets the value of the flag or, if the flag is not set, of the environment variable.
func (s *Setting) override(c *Config, from Sources) error {
	text, origin := "", ""
	if from.Env != nil {
		if v, set := from.Env(s.Env); set {
			text, origin = v, s.Env
		}
	}
	if from.Flag != nil {
		if v, set := from.Flag(s.Flag); set {
			text, origin = v, "--"+s.Flag
		}
	}
	if origin == "" {
		return nil
	}
	err := s.set(c, text)
	if err == nil {
		err = s.validate(c)
	}
	if err != nil {
		return fmt.Errorf("%s=%q: %w", origin, text, err)
	}
	return nil
}
