package compose

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

// Request is a project to convert.
type Request struct {
	// Version is that of podstead. The converter must have the same.
	Version string
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

// defaultFiles are the names of Compose files that commands look for, in this order.
var defaultFiles = []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}

// Find returns the Compose file of a directory and the one that overrides it, if there is one. The error is an [fs.ErrNotExist] if the
// directory has none.
func Find(dir string) ([]string, error) {
	for _, name := range defaultFiles {
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
	return nil, fmt.Errorf("%w: %s has none of %s", fs.ErrNotExist, dir, strings.Join(defaultFiles, ", "))
}

// IsCompose reports whether a file that begins with this text is a Compose file: a mapping with services or include, and without the keys
// of a Kubernetes object.
func IsCompose(data []byte) bool {
	var document yaml.Node
	if len(data) > MaxFileBytes || yaml.Unmarshal(data, &document) != nil || len(document.Content) == 0 {
		return false
	}
	root := document.Content[0]
	has := func(key string) bool { return Value(root, key) != nil }
	return root.Kind == yaml.MappingNode && !has("kind") && !has("apiVersion") && (has("services") || has("include"))
}

// MaxFileBytes is the maximum size of a Compose file.
const MaxFileBytes = 1 << 20

// Result is a converted project.
type Result struct {
	// Project is the name of the project; empty: it could not be read.
	Project string
	// Pods are the names of the pods, those that others wait for first. They and Claims are also set if one of the problems is an error,
	// but the project could be read.
	Pods []string
	// Claims are the names of the persistent volumes of the project, without external ones.
	Claims []string
	// Named are those of Claims that the files name. Others have names that begin with that of the project.
	Named []string
	// Files are the absolute paths of the files that the project is read from, whether or not they exist. Of an invalid project, some can
	// be missing.
	Files []string
	// Triggers are those of develop.watch, if no problem is an error.
	Triggers []Trigger
	// Manifest is a v1 List of the pods in JSON; nil if one of the problems is an error.
	Manifest []byte
	// Problems are sorted as they were found.
	Problems spec.Problems
}

// Trigger restarts a container when files change, see develop.watch of Compose.
type Trigger struct {
	// Pods are the pods of the service, one for each replica.
	Pods []string
	// Container is the container of the service.
	Container string
	// Path is the absolute path of a file or a directory, with all files below it.
	Path string
	// Include are patterns of files below Path; empty: all. Ignore are those of files that are left out. They have the form of
	// .dockerignore, and are relative to Path.
	Include, Ignore []string
}

var notDNS = lazyregexp.New(`[^a-z0-9-]+`)

// DNSName returns the name of the pod or the container of a service: its own, with the characters of a DNS label.
func DNSName(name string) string {
	const limit = 63
	label := strings.Trim(notDNS.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return cmp.Or(strings.TrimRight(label[:min(len(label), limit)], "-"), "x")
}

// OneLine returns a text of the library on one line, without a full stop and control characters, and not too long.
func OneLine(text string) string {
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

// Value returns the value of a key, see [Lookup]; nil: there is none.
func Value(n *yaml.Node, key string) *yaml.Node {
	v, _ := Lookup(n, key)
	return v
}

// Lookup returns the value of a key of a mapping, also of one that is merged into it, or of a position of a sequence, and the node where it
// begins: that of the key. Both are nil if there is none. Of several merges in one mapping, which YAML does not allow, the first counts.
func Lookup(n *yaml.Node, key string) (v, at *yaml.Node) { return lookup(n, key, 0) }

func lookup(n *yaml.Node, key string, depth int) (v, at *yaml.Node) {
	const deepest = 8
	if n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == nil || depth > deepest {
		return nil, nil
	}
	var merged *yaml.Node
	switch n.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			switch {
			case n.Content[i].Value == key:
				return n.Content[i+1], n.Content[i]
			case n.Content[i].Value == "<<" && merged == nil:
				merged = n.Content[i+1]
			}
		}
	}
	return lookup(merged, key, depth+1)
}
