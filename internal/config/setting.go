package config

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podstead/podstead/spec"
)

// Setting is a key of the configuration file, with its flag and its environment variable.
type Setting struct {
	Key     string // in the file, as section.key
	Flag    string // without the dashes
	Env     string
	Default string
	// DefaultHelp is the default as the help shows it; empty: none.
	DefaultHelp string
	Help        string
	// Global reports whether all commands have the flag, not only the daemon.
	Global bool
	// Reloads reports whether a running daemon applies a change when it reloads the configuration.
	Reloads bool

	check func(field any) error
	// supported is false for a key that is rejected.
	supported bool
}

// Settings returns the supported settings, in the order of the documentation.
func Settings() []Setting {
	return slices.DeleteFunc(settings(), func(s Setting) bool { return !s.supported })
}

// settings returns all settings, with those that are not supported yet.
func settings() []Setting {
	list := slices.Concat(pathSettings(), engineSettings(), podSettings())
	for i := range list {
		s := &list[i]
		s.Flag = separate(s.Key, "-")
		s.Env = "PODSTEAD_" + strings.ToUpper(separate(s.Key, "_"))
		s.DefaultHelp = cmp.Or(s.DefaultHelp, s.Default)
	}
	return list
}

// Kind is the type of the value as the help shows it.
func (s *Setting) Kind() string {
	switch s.field(&Config{}).(type) {
	case *[]string:
		return "list"
	case *Duration:
		return "duration"
	case *int64:
		return "int"
	case *bool:
		return "bool"
	case *spec.Quantity:
		return "quantity"
	}
	return "string"
}

// separate splits a key into lower-case words, joined by a separator.
func separate(key, separator string) string {
	var b strings.Builder
	previous := rune(0)
	for _, r := range key {
		switch {
		case r == '.':
			b.WriteString(separator)
		case unicode.IsUpper(r):
			if unicode.IsLower(previous) {
				b.WriteString(separator)
			}
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(r)
		}
		previous = r
	}
	return b.String()
}

// set parses the text of a flag, a variable or a default.
func (s *Setting) set(c *Config, text string) error {
	switch p := s.field(c).(type) {
	case *string:
		*p = text
	case *[]string:
		*p = []string{}
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*p = append(*p, part)
			}
		}
	case *Duration:
		*p = Duration(text)
	case *int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New("must be an integer")
		}
		*p = n
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("must be true or false")
		}
		*p = b
	case *spec.Quantity:
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return errors.New(`must be a quantity, such as "64Mi"`)
		}
		*p = q
	}
	return nil
}

// validate checks the value that was set.
func (s *Setting) validate(c *Config) error { return s.check(s.field(c)) }

// field returns a pointer to the field with the name of the key: *string, *[]string, *Duration, *int64, *bool or *spec.Quantity.
func (s *Setting) field(c *Config) any {
	v := reflect.ValueOf(c).Elem()
	for key := range strings.SplitSeq(s.Key, ".") {
		v = v.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, key) })
	}
	return v.Addr().Interface()
}
