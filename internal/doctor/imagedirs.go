package doctor

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/api/client"
)

// imageDirectories reports the archives in the image directories that could not be imported, and have not been removed or replaced since.
func imageDirectories(ctx context.Context, c *client.Client, dirs ...string) result {
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	failed := map[string]string{}
	for e, err := range c.Events(ctx, &client.EventQuery{}) {
		switch {
		case errors.Is(err, api.ErrUnavailable):
			return ok("unknown, the daemon is not running")
		case err != nil:
			return result{Warn, "list events: " + err.Error(), "restart the daemon with podstead daemon stop; containers keep running"}
		case e.Kind == api.EventImageArchiveFailed:
			failed[e.Fields["archive"]] = e.Fields["error"]
		case e.Kind == api.EventImageArchiveImported:
			delete(failed, e.Fields["archive"])
		}
	}
	return imageDirsResult(failed, dirs)
}

func imageDirsResult(failed map[string]string, dirs []string) result {
	var details []string
	for _, path := range slices.Sorted(maps.Keys(failed)) {
		if _, err := os.Stat(path); err == nil {
			details = append(details, path+": "+failed[path])
		}
	}
	if len(details) == 0 {
		return ok("%s", strings.Join(dirs, ", "))
	}
	if more := len(details) - maxFiles; more > 0 {
		details = append(details[:maxFiles], "and more")
	}
	return result{Warn, strings.Join(details, "; "), "replace or remove the archives"}
}
