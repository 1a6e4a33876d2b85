package spec

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// foreign is a format of other tools, which people pass in place of a pod file.
type foreign struct {
	extensions []string           // of files that have this format only
	text       *lazyregexp.Regexp // what only such a file has, in lines that no pod file has
	what, hint string
}

// foreigners are the formats of other tools. A Compose file is recognized by its fields, see checkObject.
var foreigners = []foreign{
	{
		[]string{".container", ".pod", ".kube", ".volume", ".network", ".image", ".build", ".artifact"},
		lazyregexp.New(`(?m)^\[(Container|Pod|Kube|Volume|Network|Image|Build|Artifact|Unit|Service|Install)\]\s*$`),
		"a unit of Quadlet", "convert it, with the units that belong to it: podstead convert UNIT...",
	},
	{
		nil, lazyregexp.New(`(?mi)\A(\s*#[^\n]*\n|\s*\n|ARG [^\n]*\n)*FROM\s+[^\s=]+`), "a Dockerfile", buildHint,
	},
	{
		[]string{".nomad", ".hcl"},
		lazyregexp.New(`(?m)^\s*job\s+"[^"]*"\s*\{`), "a job of Nomad",
		"write each task of a group as a container of a pod file",
	},
	{
		[]string{".tpl"},
		lazyregexp.New(`\{\{-?\s*(\.Values|\.Release|\.Chart|include|if|range|with|template|toYaml|define)\b`),
		"a template of a Helm chart", "pass what Helm writes, as in helm template CHART | podstead apply -",
	},
}

// isChart reports whether a document is the file Chart.yaml of a Helm chart.
func isChart(n *node) bool {
	return n.child("kind") == nil && n.child("name") != nil && n.child("version") != nil && textOf(n.child("apiVersion")) != ""
}

// otherFormat returns what a file that cannot be read is, if it has the format of another tool; else the error.
func otherFormat(file string, data []byte, err *syntaxError) *syntaxError {
	for _, f := range foreigners {
		if slices.Contains(f.extensions, filepath.Ext(file)) || f.text.Match(data) {
			return &syntaxError{at: position{1, 1}, message: "not a pod file, but " + f.what, hint: f.hint}
		}
	}
	return err
}

// isKustomization reports whether an object configures Kustomize.
func isKustomization(kind, version string) bool {
	return kind == "Kustomization" && strings.HasPrefix(version, "kustomize.config.k8s.io/")
}
