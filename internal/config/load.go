package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
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
	// User has the defaults of an ordinary user, see [UserDefaults]; nil: they are those of the system.
	User map[string]string
	// Check checks what the file refers to; nil: nothing. Its error makes the file invalid.
	Check func(*Config) error
}

// Load loads the configuration. If the file cannot be used, it returns a [*FileError] and the configuration with the last valid file that
// [Config.KeepValid] has copied or, if there is none, with what is valid in the file. Any other error has no configuration.
func Load(from Sources) (*Config, error) {
	file := cmp.Or(from.File, filepath.Join(from.configDir(), fileName))
	text, err := os.ReadFile(file)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing && from.File != "" {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	var c *Config
	if err == nil || missing {
		c, err = build(&from, file, text)
	} else {
		c, _ = build(&from, file, nil)
		err = &FileError{Err: fmt.Errorf("read configuration: %w", err)}
	}
	if c != nil && !missing {
		c.file = file
	}
	if invalid, ok := errors.AsType[*FileError](err); ok {
		last, e := loadValid(&from, file)
		if e == nil {
			last.file = file
			return last, &FileError{Err: invalid.Err, LastValid: true}
		}
		return c, &FileError{Err: invalid.Err, Hidden: errors.Is(err, fs.ErrPermission) || errors.Is(e, fs.ErrPermission)}
	}
	if err != nil {
		return nil, err
	}
	path, err := validPath(&from)
	if err != nil {
		return nil, err
	}
	c.valid = validCopy{path, append([]byte(header(file)), text...)}
	return c, nil
}

// build returns the configuration with the text of a file. If the text has problems, it returns a [*FileError] and what is valid.
func build(from *Sources, path string, text []byte) (*Config, error) {
	c := &Config{rootless: from.User != nil}
	list := from.settings()
	for i := range list {
		if s := &list[i]; s.Default != "" {
			if err := s.set(c, s.Default); err != nil {
				return nil, fmt.Errorf("default of %s: %w", s.Key, err)
			}
		}
	}
	file, err := c.decode(path, text, list)
	if err != nil {
		return nil, err
	}
	for i := range list {
		s := &list[i]
		if err := s.override(c, *from); err != nil {
			return nil, err
		}
	}
	if i := &c.Images; i.GCLowPercent > i.GCHighPercent {
		message := fmt.Sprintf("must not exceed images.gcHighPercent = %d", i.GCHighPercent)
		if err := conflict(file, fmt.Sprintf("images.gcLowPercent = %d: ", i.GCLowPercent), message, &i.GCLowPercent,
			&i.GCHighPercent); err != nil {
			return nil, err
		}
	}
	if err := c.checkMetrics(file); err != nil {
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
	if problems := file.Problems(); len(problems) > 0 {
		return c, &FileError{Err: problems}
	}
	if from.Check != nil {
		if err := from.Check(c); err != nil {
			return c, &FileError{Err: err}
		}
	}
	return c, nil
}

// File returns the path of the file that was loaded; empty: there was none.
func (c *Config) File() string { return c.file }

// configDir returns the configuration directory without the file, which can set another one for what it does not contain itself.
func (from *Sources) configDir() string {
	c := Config{}
	list := from.settings()
	for i := range list {
		if s := &list[i]; s.field(&c) == &c.ConfigDir {
			_ = errors.Join(s.set(&c, s.Default), s.override(&c, *from)) // Load reports it
		}
	}
	return c.ConfigDir
}

// settings returns all settings with the defaults of the user.
func (from *Sources) settings() []Setting {
	list := settings()
	for i := range list {
		if value, has := from.User[list[i].Key]; has {
			list[i].Default = value
		}
	}
	return list
}

// conflict reports that settings contradict each other: as a problem of the first one that the file sets, or else as an error that begins
// with subject. It returns nil if it is a problem of the file.
func conflict(file *spec.Decoded, subject, message string, fields ...any) error {
	for _, f := range fields {
		if file.Has(f) {
			file.Bad(f, message, "")
			return nil
		}
	}
	return errors.New(subject + message)
}

// decode sets what is valid in the text of a file.
func (c *Config) decode(path string, text []byte, list []Setting) (*spec.Decoded, error) {
	file := spec.Decode(path, text, c)
	c.named = file.Has(&c.Socket) || file.Has(&c.RunDir)
	for i := range list {
		s := &list[i]
		field := s.field(c)
		if !file.Has(field) {
			continue
		}
		if err := s.validate(c); err != nil {
			file.Bad(field, err.Error(), "")
			reflect.ValueOf(field).Elem().SetZero()
			if err := s.set(c, s.Default); s.Default != "" && err != nil {
				return nil, fmt.Errorf("default of %s: %w", s.Key, err)
			}
		}
	}
	c.checkVerify(file)
	c.checkNotify(file)
	c.checkRuntimeClasses(file)
	return file, nil
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
