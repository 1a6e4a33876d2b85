package converter

import (
	"path/filepath"
	"strings"

	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"

	"github.com/podstead/podstead/internal/compose"
)

// maxReads bounds the files that [readFiles] finds.
const maxReads = 1000

// reads are the absolute paths of the files that a project is read from, whether or not they exist.
type reads struct {
	environment types.Mapping
	paths       map[string]bool
}

// readFiles returns the files that the project is read from: Compose files, also those of include and extends, env files, label files,
// secrets and configs. Without a project, because a file is invalid, they are those that the texts of the Compose files name.
func (c *converter) readFiles() []string {
	_, stop := listen() // to the warnings of variables, which the library has given
	defer stop()
	r := &reads{c.environment, map[string]bool{}}
	for _, f := range c.q.Files {
		r.compose(c.q.Dir, f)
	}
	for _, f := range c.q.EnvFiles {
		r.add(c.q.Dir, f)
	}
	if len(c.q.EnvFiles) == 0 {
		r.add(c.q.Dir, ".env")
	}
	if c.p == nil {
		return sortedKeys(r.paths)
	}
	for _, s := range c.p.Services {
		for _, f := range s.EnvFiles {
			r.add(c.q.Dir, f.Path)
		}
		for _, f := range s.LabelFiles {
			r.add(c.q.Dir, f)
		}
	}
	for _, s := range c.p.Secrets {
		r.add(c.q.Dir, s.File)
	}
	for _, s := range c.p.Configs {
		r.add(c.q.Dir, s.File)
	}
	return sortedKeys(r.paths)
}

// add adds a file. It returns its path, and false if it was added before, or is none.
func (r *reads) add(dir, name string) (string, bool) {
	if name == "" || strings.Contains(name, "://") || len(r.paths) >= maxReads {
		return "", false
	}
	name = inside(dir, name)
	if r.paths[name] {
		return name, false
	}
	r.paths[name] = true
	return name, true
}

// compose adds a Compose file of a project directory, and those that it names.
func (r *reads) compose(dir, name string) {
	file, added := r.add(dir, name)
	if !added {
		return
	}
	data, err := readBounded(file)
	var document yaml.Node
	if err != nil || yaml.Unmarshal(data, &document) != nil || len(document.Content) == 0 {
		return
	}
	root := document.Content[0]
	if list := compose.Value(root, "include"); list != nil && list.Kind == yaml.SequenceNode {
		for _, n := range list.Content {
			r.include(dir, n)
		}
	}
	services := compose.Value(root, "services")
	if services == nil || services.Kind != yaml.MappingNode {
		return
	}
	for i := 1; i < len(services.Content); i += 2 {
		for _, extended := range r.texts(compose.Value(compose.Value(services.Content[i], "extends"), "file")) {
			file := inside(dir, extended)
			r.compose(filepath.Dir(file), file) // what it extends is relative to it
		}
	}
}

// include adds the files of an element of include: a path, or a mapping with paths, a directory and env files.
func (r *reads) include(dir string, n *yaml.Node) {
	paths := r.texts(n)
	var own string
	var envFiles []string
	if n.Kind == yaml.MappingNode {
		paths, envFiles = r.texts(compose.Value(n, "path")), r.texts(compose.Value(n, "env_file"))
		for _, d := range r.texts(compose.Value(n, "project_directory")) {
			own = inside(dir, d)
		}
	}
	if len(paths) == 0 {
		return
	}
	if own == "" {
		own = filepath.Dir(inside(dir, paths[0]))
	}
	for _, f := range envFiles {
		r.add(dir, f)
	}
	if len(envFiles) == 0 {
		r.add(own, ".env")
	}
	for _, f := range paths {
		r.compose(own, inside(dir, f))
	}
}

// inside returns the path of a file that a file of a directory names.
func inside(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// texts returns the text of a node, or the texts of a list, with the values of variables.
func (r *reads) texts(n *yaml.Node) (list []string) {
	switch {
	case n == nil:
	case n.Kind == yaml.ScalarNode:
		text := n.Value
		if strings.Contains(text, "$") {
			var err error
			if text, err = template.Substitute(text, r.environment.Resolve); err != nil || r.environment == nil {
				return nil // the library reports it
			}
		}
		return []string{text}
	case n.Kind == yaml.SequenceNode:
		for _, element := range n.Content {
			list = append(list, r.texts(element)...)
		}
	}
	return list
}
