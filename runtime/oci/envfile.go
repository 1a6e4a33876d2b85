package oci

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// errNotText is the error for a value that cannot be that of a variable.
var errNotText = errors.New("the value is not UTF-8 text without null characters")

// EnvFile is an env file, from which the values of some keys are taken. It is read as far as a value needs, and each line once, however
// many values are taken from it. The format is that of fileKeyRef (KEP-3721), which POSIX shells read in the same way. It is not safe for
// concurrent use.
type EnvFile struct {
	lines  envFile
	keys   map[string]bool
	values map[string]lineValue // of the keys that were read, without later assignments to them
	err    error                // why no more is read; [io.EOF] at the end
}

// lineValue is a value with the number of its last line.
type lineValue struct {
	text string
	line int
}

// NewEnvFile returns the env file with a text, for these keys. Others are read and not kept.
func NewEnvFile(text []byte, keys map[string]bool) *EnvFile {
	lines := bufio.NewScanner(bytes.NewReader(text)) // of less than 64 KiB, as in the kubelet
	return &EnvFile{lines: envFile{lines: lines}, keys: keys, values: map[string]lineValue{}}
}

// Value returns the value of one of the keys, or "" if the file does not set it. The first line that sets it counts, and what follows is
// not read. Errors are those of the kubelet, with the number of a line and without values.
func (f *EnvFile) Value(key string) (string, error) {
	for {
		if v, known := f.values[key]; known {
			if !utf8.ValidString(v.text) || strings.ContainsRune(v.text, 0) {
				return "", fmt.Errorf("line %d: %w", v.line, errNotText)
			}
			return v.text, nil
		}
		if f.err == nil {
			f.err = f.read()
		}
		if f.err != nil {
			if errors.Is(f.err, io.EOF) {
				return "", nil
			}
			return "", f.err
		}
	}
}

// read reads one assignment.
func (f *EnvFile) read() error {
	if !f.lines.next() {
		if err := f.lines.lines.Err(); err != nil {
			return fmt.Errorf("line %d: %w", f.lines.number+1, err)
		}
		return io.EOF
	}
	name, value, err := f.lines.assignment()
	if err != nil {
		return err
	}
	if _, known := f.values[name]; !known && f.keys[name] {
		f.values[name] = lineValue{value, f.lines.number}
	}
	return nil
}

// envFile is an env file that is read line by line.
type envFile struct {
	lines  *bufio.Scanner
	number int    // of the line, from 1
	line   string // without leading blanks
}

// next goes to the next line that is neither empty nor a comment.
func (f *envFile) next() bool {
	for f.lines.Scan() {
		f.number++
		f.line = strings.TrimLeft(f.lines.Text(), " \t")
		if f.line != "" && f.line[0] != '#' {
			return true
		}
	}
	return false
}

// assignment reads an assignment, whose value may end on a later line.
func (f *envFile) assignment() (name, value string, err error) {
	name, rest, found := strings.Cut(f.line, "=")
	switch {
	case !found:
		return "", "", f.invalid("missing '='")
	case strings.TrimRight(name, " \t") == "":
		return "", "", f.invalid("empty variable name")
	case strings.TrimRight(name, " \t") != name:
		return "", "", f.invalid("whitespace before '=' is not allowed")
	case strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "\t"):
		return name, "", nil // a shell sets the variable to nothing
	}
	rest, found = strings.CutPrefix(rest, "'")
	if !found {
		return "", "", f.invalid("value must be enclosed in single quotes")
	}
	value, err = f.quoted(rest)
	return name, value, err
}

// quoted reads a value up to its closing quote. Nothing but a comment may follow.
func (f *envFile) quoted(rest string) (string, error) {
	first := f.number
	var value strings.Builder
	for {
		part, after, closed := strings.Cut(rest, "'")
		value.WriteString(part)
		if closed {
			if after = strings.TrimLeft(after, " \t"); after != "" && after[0] != '#' {
				return "", f.invalid("unexpected content after closing quote")
			}
			return value.String(), nil
		}
		if !f.lines.Scan() {
			return "", fmt.Errorf("invalid environment variable format starting at line %d: unclosed single quote", first)
		}
		f.number++
		value.WriteByte('\n')
		rest = f.lines.Text()
	}
}

func (f *envFile) invalid(why string) error {
	return fmt.Errorf("invalid environment variable format at line %d: %s", f.number, why)
}
