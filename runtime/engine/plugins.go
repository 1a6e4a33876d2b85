package engine

import (
	"fmt"
	"sync"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
)

// accessType and accessID name the plug-in that gives the engine access to the others. It is loaded last.
const (
	accessType plugin.Type = "io.podstead.engine.v1"
	accessID   string      = "access"
)

// access is what the engine uses of containerd's plug-ins.
type access struct {
	client     *client.Client
	controller sandbox.Controller
	cleaners   []snapshots.Cleaner
}

// loading serializes starts of containerd: its plug-in registry is global to the process, and so is the result of the access
// plug-in.
var loading struct {
	sync.Mutex
	registered bool
	got        access
}

// load runs start, which loads the plug-ins, and returns what the access plug-in collected.
func load(start func() error) (access, error) {
	loading.Lock()
	defer loading.Unlock()
	if !loading.registered {
		registry.Register(&plugin.Registration{
			Type: accessType,
			ID:   accessID,
			Requires: []plugin.Type{
				plugins.EventPlugin, plugins.LeasePlugin, plugins.SandboxStorePlugin, plugins.SandboxControllerPlugin,
				plugins.SnapshotPlugin, plugins.TransferPlugin, plugins.MountManagerPlugin, plugins.ServicePlugin, plugins.RuntimePluginV2,
			},
			InitFn: func(ic *plugin.InitContext) (any, error) {
				a, err := newAccess(ic)
				loading.got = a
				return a, err
			},
		})
		loading.registered = true
	}
	loading.got = access{}
	if err := start(); err != nil {
		return access{}, err
	}
	return loading.got, nil
}

func newAccess(ic *plugin.InitContext) (access, error) {
	// The in-memory client has no sandbox controllers of its own; see Engine.StartSandbox.
	c, err := client.New("", client.WithInMemoryServices(ic), client.WithDefaultNamespace(Namespace))
	if err != nil {
		return access{}, err
	}
	p, err := ic.GetByID(plugins.SandboxControllerPlugin, sandboxController)
	if err != nil {
		return access{}, err
	}
	controller, ok := p.(sandbox.Controller)
	if !ok {
		return access{}, fmt.Errorf("sandbox controller has the unexpected type %T", p)
	}
	snapshotters, err := ic.GetByType(plugins.SnapshotPlugin)
	if err != nil {
		return access{}, err
	}
	a := access{client: c, controller: controller}
	for _, s := range snapshotters {
		if cleaner, ok := s.(snapshots.Cleaner); ok {
			a.cleaners = append(a.cleaners, cleaner)
		}
	}
	return a, nil
}
