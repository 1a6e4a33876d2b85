package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/podstead/podstead/internal/cdi"
)

// cdiDevices reports files of the Container Device Interface that cannot be read, devices that no container can have, and directories that
// users other than root can write to: specifications have programs run as root.
func cdiDevices(ctx context.Context, dirs []string) result {
	r := cdi.Read(ctx, dirs)
	var failed, writable []string
	for _, dir := range dirs {
		if reason := writableByOthers(dir, []int{0}); reason != "" {
			writable = append(writable, dir+": "+reason)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(r.Unreadable)) {
		failed = append(failed, fmt.Sprintf("%s: %v", path, r.Unreadable[path]))
	}
	names := r.Names()
	for _, name := range names {
		if _, err := r.Find(name); err != nil {
			failed = append(failed, err.Error())
		}
	}
	switch {
	case len(writable) > 0:
		return result{
			Warn, strings.Join(writable, "; "),
			"make root the owner of the directory, and let only root write to it; other users can have programs run as root",
		}
	case len(failed) > 0:
		return result{Warn, strings.Join(failed, "; "), "repair the files, or write them again with the program of the vendor"}
	case len(names) == 0:
		return ok("none in %s", strings.Join(dirs, ", "))
	}
	return ok("%s", strings.Join(names, ", "))
}
