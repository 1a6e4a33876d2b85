package spec

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxConfigBytes is what a config map or secret may hold, as in Kubernetes.
const maxConfigBytes = 1 << 20

// Accept is [Parse] for a pod that is about to run: it also reads the envFile
// of each inline config map and secret, whose keys join Data and whose content
// counts for the pod's hash. What is wrong with such a file is a problem with
// that file's name and line.
func Accept(file string, data []byte) (*Pod, Problems) {
	return parse(file, data, unsupported, readEnvFile)
}

// readEnvFile reads a whole file that may be as long as a config map, and the
// mode that it has.
func readEnvFile(path string) ([]byte, fs.FileMode, error) {
	info, err := os.Stat(path) // an open FIFO would wait for its writer
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err == nil && len(text) > maxConfigBytes {
		err = fmt.Errorf("longer than %d bytes", maxConfigBytes)
	}
	return text, info.Mode().Perm(), err
}

// envFiles reads the env files of the pod into the tables that name them.
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
		if s.Data == nil && s.Credential == "" {
			s.Data = SecretData{}
		}
		mode := d.envFile(&s.EnvFile, read, func(key, value string) bool {
			if _, taken := s.Data[key]; taken {
				return false
			}
			s.Data[key] = Sensitive(value)
			return true
		})
		if n := d.at[&s.EnvFile]; mode&0o077 != 0 && n != nil {
			w := warnAt(n, fmt.Sprintf("others than its owner may read the secret (mode %04o)", mode))
			w.Hint = "chmod 600 " + printable(s.EnvFile)
			d.problems = append(d.problems, w)
		}
	}
}

// envFile reads one file and hands out its variables; set reports false for a
// key that is taken. It returns the mode of the file.
func (d *decoder) envFile(field *string, read reader, set func(key, value string) bool) fs.FileMode {
	n := d.at[field]
	if n == nil || n.failed || *field == "" {
		return 0
	}
	text, mode, err := read(*field)
	if err != nil {
		if at, is := errors.AsType[*fs.PathError](err); is {
			err = at.Err
		}
		d.fail(n, n.at, "read "+clip(*field)+": "+printable(err.Error()), "")
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

// parseEnvFile reads a file in the format of `kubectl create --from-env-file`:
// a line is KEY=value, empty, or a comment that begins with #. A value is what
// follows, up to the end of the line, quotes included. No problem quotes one.
func parseEnvFile(text []byte, set func(key, value string) bool) (problems Problems) {
	bad := func(line int, message, hint string) {
		problems = append(problems, Problem{Line: line, Message: message, Hint: hint})
	}
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	lines.Buffer(nil, maxConfigBytes+1)
	for number := 1; lines.Scan(); number++ {
		if !utf8.Valid(lines.Bytes()) || bytes.IndexByte(lines.Bytes(), 0) >= 0 {
			bad(number, "is not text in UTF-8", "")
			continue
		}
		line := strings.TrimLeftFunc(lines.Text(), unicode.IsSpace)
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		switch {
		case !found:
			bad(number, "want KEY=value", "a line without a value sets nothing")
		case len(validation.IsConfigMapKey(key)) > 0 || len(validation.IsEnvVarName(key)) > 0:
			bad(number, "the name before = must be of letters, digits, '_', '-' or '.', and not begin with a digit", "")
		case !set(key, value):
			bad(number, "the key "+quote(key)+" is set twice", "")
		}
	}
	return problems
}
