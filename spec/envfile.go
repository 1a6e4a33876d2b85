package spec

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxConfigBytes is the maximum size of a config map or secret in Kubernetes
// (v1.MaxSecretSize).
const maxConfigBytes = 1 << 20

// Accept is [Parse] for a pod that is to run. It also reads the envFile of each
// inline config map and secret: its keys are added to Data, and its content is
// part of the pod's hash. A problem of an env file has the name and the line of
// that file.
func Accept(file string, data []byte) (*Pod, Problems) { return Options{}.Accept(file, data) }

// Accept is [Accept] with options.
func (o Options) Accept(file string, data []byte) (*Pod, Problems) {
	o.read = readEnvFile
	return parse(file, data, o)
}

// readEnvFile returns the content and the mode of a file of at most
// maxConfigBytes.
func readEnvFile(path string) ([]byte, fs.FileMode, error) {
	text, info, err := ReadFile(path, maxConfigBytes)
	if err != nil {
		return nil, 0, err
	}
	return text, info.Mode().Perm(), nil
}

// envFiles adds the variables of the env files to the config maps and secrets.
func (d *decoder) envFiles(p *Pod, read reader) {
	for i := range p.ConfigMaps {
		c := &p.ConfigMaps[i]
		d.envFile(&c.EnvFile, read, func(key, value string) bool {
			if _, taken := c.Data[key]; taken {
				return false
			}
			if c.Data == nil {
				c.Data = map[string]string{}
			}
			c.Data[key] = value
			return true
		})
	}
	for i := range p.Secrets {
		s := &p.Secrets[i]
		if s.Data == nil && s.CredentialName() == "" {
			s.Data = SecretData{}
		}
		d.credentialFile(&s.CredentialFile, read)
		mode := d.envFile(&s.EnvFile, read, func(key, value string) bool {
			if _, taken := s.Data[key]; taken {
				return false
			}
			s.Data[key] = Sensitive(value)
			return true
		})
		if n := d.at[&s.EnvFile]; mode&0o077 != 0 && n != nil {
			w := warnAt(n, fmt.Sprintf("the secret is accessible to group or others (mode %04o)", mode))
			w.Hint, w.Code = "run chmod 600 "+printable(s.EnvFile), CodeSecretReadable
			d.problems = append(d.problems, w)
		}
	}
}

// unreadable reports that a file cannot be read.
func (d *decoder) unreadable(n *node, file string, err error) {
	if at, is := errors.AsType[*fs.PathError](err); is {
		err = at.Err
	}
	d.fail(n, n.at, "read "+clip(file)+": "+printable(err.Error()), "")
}

// credentialFile checks that an encrypted credential can be read. Its content is not part of the hash: the pod gets a new one without a
// change of its definition.
func (d *decoder) credentialFile(field *string, read reader) {
	n := d.at[field]
	if n == nil || n.failed || *field == "" {
		return
	}
	if _, _, err := read(*field); err != nil {
		d.unreadable(n, *field, err)
	}
}

// envFile reads one file and calls set for each variable. set returns false if
// the key exists already. envFile returns the mode of the file.
func (d *decoder) envFile(field *string, read reader, set func(key, value string) bool) fs.FileMode {
	n := d.at[field]
	if n == nil || n.failed || *field == "" {
		return 0
	}
	text, mode, err := read(*field)
	if err != nil {
		d.unreadable(n, *field, err)
		return 0
	}
	sum := sha256.Sum256(text)
	n.canonical = strconv.Quote(*field + " " + hex.EncodeToString(sum[:16]))
	for _, problem := range parseEnvFile(text, set) {
		problem.File = printable(*field)
		problem.Column = 1
		d.problems = append(d.problems, problem)
	}
	return mode
}

// parseEnvFile parses the format of kubectl create --from-env-file: a line is
// KEY=value, empty, or a comment that begins with #. The value is the rest of
// the line, including quotes. Problems never contain a value.
func parseEnvFile(text []byte, set func(key, value string) bool) (problems Problems) {
	bad := func(line int, message string) {
		problems = append(problems, Problem{Line: line, Message: message})
	}
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	lines.Buffer(nil, maxConfigBytes+1)
	for number := 1; lines.Scan(); number++ {
		if !utf8.Valid(lines.Bytes()) || bytes.IndexByte(lines.Bytes(), 0) >= 0 {
			bad(number, "must be UTF-8 text")
			continue
		}
		line := strings.TrimLeftFunc(lines.Text(), unicode.IsSpace)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		switch {
		case !found:
			bad(number, "must be KEY=value")
		case len(validation.IsConfigMapKey(key)) > 0 || len(validation.IsEnvVarName(key)) > 0:
			bad(number, "a key must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit")
		case !set(key, value):
			bad(number, "Duplicate value: "+quote(key))
		}
	}
	return problems
}
