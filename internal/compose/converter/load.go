package converter

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

	"github.com/podstead/podstead/internal/compose"
	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

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
	data, err := io.ReadAll(io.LimitReader(f, compose.MaxFileBytes+1))
	if err == nil && len(data) > compose.MaxFileBytes {
		err = fmt.Errorf("read %s: larger than %d bytes", path, compose.MaxFileBytes)
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
	if text := compose.OneLine(e.Message); len(h.texts) < limit && !slices.Contains(h.texts, text) && !strings.Contains(text, "`version`") {
		h.texts = append(h.texts, text)
	}
	return nil
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
	p := spec.Problem{File: c.q.Names[0], Line: 1, Column: 1, Message: compose.OneLine(text)}
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
