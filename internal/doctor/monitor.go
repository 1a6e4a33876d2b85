package doctor

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/daemon"
	"github.com/podstead/podstead/runtime/engine"
	"github.com/podstead/podstead/runtime/monitor"
)

// monitorProcess checks the program and the process that runs the containers of all pods.
func monitorProcess(ctx context.Context, c *config.Config) result {
	program, err := daemon.MonitorPath()
	if err != nil {
		return result{Fail, err.Error(), daemon.Hint(err, c)}
	}
	return monitorIn(ctx, engine.MonitorDir(dirs(c).EngineRun()), program)
}

// monitorIn is monitorProcess with a state directory and a program.
func monitorIn(ctx context.Context, dir, program string) result {
	used, err := monitor.InUse(dir)
	if err != nil {
		return result{Warn, err.Error(), "run podstead doctor as root"}
	}
	ctx, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	log := filepath.Join(dir, monitor.LogFile)
	client, err := monitor.Dial(ctx, dir)
	switch {
	case err != nil && !used:
		return ok("%s, not running", program)
	case err != nil:
		return result{Warn, err.Error(), "read the log of the monitor, " + log + "; the daemon starts the monitor again"}
	}
	defer client.Close()
	hello, err := client.Hello(ctx)
	if err != nil {
		return result{Warn, err.Error(), "try again in 20 s: the daemon replaces a monitor that does not respond; the log is " + log}
	}
	if same, err := hello.Executes(program); err == nil && !same {
		installed, err := monitor.VersionOf(ctx, program)
		if err != nil {
			installed = err.Error()
		}
		detail := fmt.Sprintf("version %s runs, pid %d, but %s has version %s", hello.Version, hello.PID, program, installed)
		return result{
			Warn, detail,
			"restart the daemon, which replaces the monitor; podstead events shows MonitorNotReplaced with the reason if that fails",
		}
	}
	return ok("%s, running, version %s, pid %d, starts since boot: %d", program, hello.Version, hello.PID, hello.Monitors)
}
