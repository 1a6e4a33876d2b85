package explain_test

import "github.com/podstead/podstead/spec"

func pod(script string) *spec.Pod {
	return &spec.Pod{
		Name: "web", RestartPolicy: spec.RestartAlways, TerminationGracePeriodSeconds: 10,
		Containers: []spec.Container{{Name: "app", Image: "i:1", Command: []string{"sh", "-c", script}}},
	}
}

// staged is a pod with a sidecar and an init container that is never restarted.
func staged(script string) *spec.Pod {
	p := pod("sleep 31536000")
	p.RestartPolicy = spec.RestartNever
	p.InitContainers = []spec.Container{
		{
			Name: "side", Image: "i:1", RestartPolicy: spec.RestartAlways,
			Command: []string{"sh", "-c", "trap 'exit 143' TERM; sleep 31536000"},
		},
		{Name: "prepare", Image: "i:1", Command: []string{"sh", "-c", script}},
	}
	return p
}

// stubborn makes the sidecar of a staged pod ignore SIGTERM.
func stubborn(p *spec.Pod) *spec.Pod {
	p.InitContainers[0].Command[2] = "sleep 31536000"
	return p
}

func checked(p *spec.Pod, set func(*spec.Container, *spec.Probe)) *spec.Pod {
	set(&p.Containers[0], &spec.Probe{
		Exec: &spec.ExecAction{Command: []string{"check"}}, PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	})
	return p
}

func liveness(c *spec.Container, p *spec.Probe)  { c.LivenessProbe = p }
func readiness(c *spec.Container, p *spec.Probe) { c.ReadinessProbe = p }
func startup(c *spec.Container, p *spec.Probe)   { c.StartupProbe = p }
