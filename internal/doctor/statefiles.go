package doctor

import (
	"fmt"
	"strings"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/doctor/statefiles"
)

// stateVersions reports the files of a later version of Podstead.
func stateVersions(c *config.Config) result {
	files, reason := statefiles.Newer(c)
	if len(files) == 0 {
		return ok("no files of a later version")
	}
	detail := strings.Join(files[:min(len(files), maxFiles)], ", ")
	if more := len(files) - maxFiles; more > 0 {
		detail += fmt.Sprintf(" and %d more", more)
	}
	return result{Warn, fmt.Sprintf("%s: %v", detail, reason), "install that version again; its pods keep running without supervision until then"}
}
