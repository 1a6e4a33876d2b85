package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/record"
)

// damagedFiles reports the files of the container engine that were damaged and set aside.
func damagedFiles(c *config.Config) result {
	journal := engine.DamageJournal(dirs(c).Engine())
	reports, err := journal.Reports()
	if err != nil {
		return result{Warn, err.Error(), "delete the file"}
	}
	if len(reports) == 0 {
		return ok("no damaged files were found")
	}
	last := reports[len(reports)-1]
	return result{
		Warn, fmt.Sprintf("damaged files: %d, last %s", len(reports), Describe(last)),
		"check dmesg for disk errors, stop the daemon with podstead daemon stop, check images with podstead doctor --repair, then delete " +
			journal.Dir,
	}
}

// Describe returns a report as text.
func Describe(r engine.DamageReport) string {
	text := fmt.Sprintf("%s %s (%s)", r.Time.Format(time.RFC3339), r.File, r.Reason)
	if r.Aside != "" {
		text += ", now " + filepath.Base(r.Aside)
	}
	return text
}

// Repair checks all files of the container engine, and sets aside or deletes damaged ones. No daemon may be running.
func Repair(ctx context.Context, c *config.Config) ([]engine.DamageReport, error) {
	return engine.Repair(ctx, engine.Options{Root: dirs(c).Engine(), State: dirs(c).EngineRun(), Runtime: c.Engine.Runtime})
}

func dirs(c *config.Config) record.Dirs {
	return record.Dirs{State: c.StateDir, Run: c.RunDir, Log: c.LogDir}
}
