package volume

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/spec"
)

// subPathOf returns the relative path of a volume mount, or "" for the whole volume.
func subPathOf(m *spec.VolumeMount, vars map[string]string) (string, error) {
	sub := m.SubPath
	if m.SubPathExpr != "" {
		var err error
		if sub, err = expand(m.SubPathExpr, vars); err != nil {
			return "", err
		}
	}
	if sub == "" {
		return "", nil
	}
	if path.IsAbs(sub) {
		return "", fmt.Errorf("error SubPath `%s` must not be an absolute path", sub)
	}
	if slices.Contains(strings.Split(sub, "/"), "..") {
		return "", fmt.Errorf("unable to provision SubPath `%s`: must not contain '..'", sub)
	}
	return path.Clean(sub), nil
}

// maxSubPath is the maximum length of a path (PATH_MAX).
const maxSubPath = 4096

// reference matches an escaped dollar or a reference, as in [spec.Expand].
var reference = lazyregexp.New(`\$\$|\$\(([^)]*)\)`)

// expand replaces each $(NAME). The variable must be set and not empty.
func expand(expression string, vars map[string]string) (string, error) {
	var missing []string
	for _, match := range reference.FindAllStringSubmatch(expression, -1) {
		if match[0] != "$$" && vars[match[1]] == "" {
			missing = append(missing, match[1])
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return "", fmt.Errorf("missing value for %s", strings.Join(slices.Compact(missing), ", "))
	}
	expanded, ok := spec.Expand(expression, vars, maxSubPath)
	if !ok {
		return "", fmt.Errorf("subPathExpr: Too long: may not be more than %d bytes, with references expanded", maxSubPath)
	}
	return expanded, nil
}
