package compose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/sirupsen/logrus"
	"go.yaml.in/yaml/v3"

	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

// Request is a project to convert.
type Request struct {
	// Files are the absolute paths of the Compose files. Later ones override earlier ones. At least one is required.
	Files []string
	// Names are the paths of Files as the user wrote them, for messages.
	Names []string
	// Dir is the absolute directory of the project: relative paths are relative to it, and files below it are read.
	Dir string
	// AllowedDirs are absolute paths of other directories whose files are read.
	AllowedDirs []string
	// EnvFiles are absolute paths of files with variables for interpolation. Default: .env in Dir, if it exists.
	EnvFiles []string
	// Profiles are the selected profiles. Default: those of COMPOSE_PROFILES.
	Profiles []string
	// Project is the name of the project. Default: that of the files, else the base name of Dir.
	Project string
	// Environment has the variables for interpolation, as NAME=VALUE. They take precedence over EnvFiles.
	Environment []string
	// AllowLoss turns losses into warnings.
	AllowLoss bool
}

// DefaultFiles are the names of Compose files that commands look for, in this order.
var DefaultFiles = []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}

// Find returns the Compose file of a directory and the one that overrides it, if there is one. The error is an [fs.ErrNotExist] if the
// directory has none.
func Find(dir string) ([]string, error) {
	for _, name := range DefaultFiles {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			continue
		}
		files := []string{filepath.Join(dir, name)}
		base := strings.TrimSuffix(name, filepath.Ext(name))
		for _, extension := range []string{".yaml", ".yml"} {
			override := filepath.Join(dir, base+".override"+extension)
			if _, err := os.Stat(override); err == nil {
				return append(files, override), nil
			}
		}
		return files, nil
	}
	return nil, fmt.Errorf("%w: %s has none of %s", fs.ErrNotExist, dir, strings.Join(DefaultFiles, ", "))
}

// IsCompose reports whether a file that begins with this text is a Compose file: a mapping with services or include, and without the keys
// of a Kubernetes object.
func IsCompose(data []byte) bool {
	var document yaml.Node
	if len(data) > maxFileBytes || yaml.Unmarshal(data, &document) != nil || len(document.Content) == 0 {
		return false
	}
	root := document.Content[0]
	has := func(key string) bool { return value(root, key) != nil }
	return root.Kind == yaml.MappingNode && !has("kind") && !has("apiVersion") && (has("services") || has("include"))
}

// maxFileBytes is the maximum size of a Compose file.
const maxFileBytes = 1 << 20

// load reads the project. Messages of the library that are no errors are added to the problems.
func (c *converter) load(ctx context.Context) (*types.Project, error) {
	for i, file := range c.q.Files {
		data, err := readBounded(file)
		if err != nil {
			return nil, err
		}
		s := source{name: c.q.Names[i]}
		if yaml.Unmarshal(data, &s.document) == nil { // the library reports the error
			c.sources = append(c.sources, s)
		}
	}
	warnings, stop := listen()
	defer func() {
		stop()
		for _, text := range *warnings {
			c.warn(nil, text)
		}
	}()
	options := []cli.ProjectOptionsFn{
		cli.WithWorkingDirectory(c.q.Dir), cli.WithEnv(c.q.Environment), cli.WithEnvFiles(c.q.EnvFiles...), cli.WithDotEnv,
		cli.WithDefaultProfiles(c.q.Profiles...), cli.WithoutEnvironmentResolution, cli.WithoutLabelsResolution,
	}
	if c.q.Project != "" {
		options = append(options, cli.WithName(c.q.Project))
	}
	o, err := cli.NewProjectOptions(slices.Clone(c.q.Files), options...)
	if err != nil {
		return nil, err
	}
	c.environment = o.Environment
	p, err := o.LoadProject(ctx)
	if err != nil {
		return nil, err
	}
	c.disabled = p.DisabledServices
	for _, name := range sortedKeys(p.Services) {
		s := p.Services[name]
		for _, f := range s.EnvFiles {
			if err := c.checkPath(f.Path); err != nil {
				return nil, err
			}
		}
		for _, f := range s.LabelFiles {
			if err := c.checkPath(f); err != nil {
				return nil, err
			}
		}
	}
	if p, err = p.WithServicesEnvironmentResolved(false); err != nil {
		return nil, err
	}
	return p.WithServicesLabelsResolved(false)
}

// readBounded reads a Compose file that the user named.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("read %s: larger than %d bytes", path, maxFileBytes)
	}
	return data, err
}

// errOutside is the error of a file that is not read because of its place.
var errOutside = errors.New("is outside of the directory of the project")

// checkPath rejects files outside of the directories that may be read, also through symbolic links. Landlock rejects the others that the
// library reads, see [Isolated].
func (c *converter) checkPath(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil // reading the file reports the error
	}
	if info, err := os.Stat(real); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	for _, dir := range slices.Concat([]string{c.q.Dir}, c.q.AllowedDirs) {
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			continue
		}
		if relative, err := filepath.Rel(dir, real); err == nil && filepath.IsLocal(relative) {
			return nil
		}
	}
	return fmt.Errorf("%s %w", path, errOutside)
}

// listening guards the logger of the library, which is global.
var listening sync.Mutex

// listen collects the warnings of the library until stop is called.
func listen() (warnings *[]string, stop func()) {
	listening.Lock()
	h := &hook{}
	logger := logrus.StandardLogger()
	out, hooks := logger.Out, logger.ReplaceHooks(logrus.LevelHooks{logrus.WarnLevel: {h}})
	logger.SetOutput(io.Discard)
	return &h.texts, func() {
		logger.SetOutput(out)
		logger.ReplaceHooks(hooks)
		listening.Unlock()
	}
}

type hook struct{ texts []string }

func (h *hook) Levels() []logrus.Level { return []logrus.Level{logrus.WarnLevel} }

func (h *hook) Fire(e *logrus.Entry) error {
	const limit = 100
	if text := oneLine(e.Message); len(h.texts) < limit && !slices.Contains(h.texts, text) && !strings.Contains(text, "`version`") {
		h.texts = append(h.texts, text)
	}
	return nil
}

// oneLine returns a text of the library on one line, without a full stop and control characters, and not too long.
func oneLine(text string) string {
	const limit = 500
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "..."
	}
	return strings.TrimSuffix(text, ".")
}

var (
	errorPath = lazyregexp.New(`\b(services|networks|volumes|secrets|configs|include|name)(?:\.[^\s:"']+)*`)
	errorLine = lazyregexp.New(`\bline (\d+)(?:, column \d+)?:`)
	// envFile matches an error of a file with variables.
	envFile = lazyregexp.New(`^failed to read (\S+): (?:line (\d+): )?(.+)$`)
	// quotedLine matches the text of a file with variables in its errors. It may be a secret.
	quotedLine = lazyregexp.New(`(in variable name|unterminated quoted value|[Ii]nvalid template:?) .*$`)
)

// fail adds the error of the library.
func (c *converter) fail(err error) {
	text := strings.ReplaceAll(err.Error(), c.q.Dir+string(filepath.Separator), "")
	p := spec.Problem{File: c.q.Names[0], Line: 1, Column: 1, Message: oneLine(text)}
	if m := envFile.FindStringSubmatch(p.Message); m != nil {
		p.Message = "invalid env file: " + quotedLine.ReplaceAllString(m[3], "$1")
		if p.File = m[1]; !filepath.IsAbs(p.File) {
			p.File = filepath.Join(filepath.Dir(c.q.Names[0]), p.File)
		}
		_, _ = fmt.Sscan(m[2], &p.Line)
		c.problems = append(c.problems, p)
		return
	}
	p.Message, p.Hint = reword(p.Message)
	if m := errorPath.FindString(p.Message); m != "" {
		p.File, p.Line, p.Column = c.position(strings.Split(m, "."))
	} else if words := strings.Fields(p.Message); len(words) > 0 { // a path is at the beginning, a value at the end
		p.File, p.Line, p.Column = c.positionOf(words[0], words[len(words)-1])
	}
	if all := errorLine.FindAllStringSubmatch(text, -1); len(all) > 0 { // the last is the cause
		_, _ = fmt.Sscan(all[len(all)-1][1], &p.Line)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errOutside) || strings.Contains(text, "permission denied") {
		p.Hint = "only files below the directory of the project are read; name others with --allow-dir DIR"
	}
	c.problems = append(c.problems, p)
}
