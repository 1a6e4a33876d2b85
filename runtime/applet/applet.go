// Package applet has the small processes that the program of the monitor is under other names, so that their code takes no additional
// memory: the pause process of a pod, the init process of a container, and the holder of the namespaces of a daemon without root. The
// package must have few imports and has no notion of containers.
package applet

// Main runs the applet that the arguments of this process (os.Args) name, and returns its exit code. If they name none, it returns false at
// once.
func Main(args []string) (code int, invoked bool) {
	switch {
	case isPause(args):
		return pause(), true
	case isInit(args):
		return initialize(args), true
	case isHolder(args):
		return hold(), true
	}
	return 0, false
}
