package simulate_test

import (
	"fmt"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/simulate"
)

// A test of a pod file: a server that needs 20 seconds to start must not be restarted by its liveness probe.
func ExamplePods() {
	pod, problems := spec.Parse("/pods/web.toml", []byte(`
[[containers]]
name = "server"
image = "server:1"
livenessProbe = { httpGet = ":8080/healthz", periodSeconds = 5, failureThreshold = 3 }
`))
	if pod == nil {
		fmt.Println(problems)
		return
	}
	none := int64(0)
	result, err := simulate.Pods([]*spec.Pod{pod}, simulate.Options{
		For: 5 * time.Minute,
		Scenario: &simulate.Scenario{
			Containers: []simulate.Container{{Name: "server", Runs: []simulate.ContainerRun{{ReadyAfter: "20s"}}}},
			Assert:     []simulate.Assertion{{MaxRestarts: &none}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, failure := range result.Failures {
		fmt.Println(failure)
	}
	// Output:
	// assert[0]: container "server" of pod "web" restarts 5 times in 5m
}
