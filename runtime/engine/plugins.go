package engine

import (
	"fmt"
	"sync"

	"github.com/containerd/containerd/v2/client"
	shimmanager "github.com/containerd/containerd/v2/core/runtime/v2"
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
	records    *recordCopy
	controller sandbox.Controller
	shims      *shimmanager.ShimManager
	collector  *garbageCollector
	cleaners   []snapshots.Cleaner
	tasks      *monitoredTasks
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
		registerCollector()
		registerMounts()
		registry.Register(&plugin.Registration{
			Type: accessType,
			ID:   accessID,
			Requires: []plugin.Type{
				plugins.EventPlugin, plugins.LeasePlugin, plugins.SandboxStorePlugin, plugins.SandboxControllerPlugin,
				plugins.SnapshotPlugin, plugins.TransferPlugin, plugins.MountManagerPlugin, plugins.ServicePlugin, plugins.RuntimePluginV2,
				plugins.ShimPlugin, plugins.GCPlugin,
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
	c, err := client.New("", client.WithInMemoryServices(ic))
	if err != nil {
		return access{}, err
	}
	snapshotters, err := ic.GetByType(plugins.SnapshotPlugin)
	if err != nil {
		return access{}, err
	}
	controller, err := typed[sandbox.Controller](ic.GetByID(plugins.SandboxControllerPlugin, sandboxController))
	if err != nil {
		return access{}, err
	}
	shims, err := typed[*shimmanager.ShimManager](ic.GetSingle(plugins.ShimPlugin))
	if err != nil {
		return access{}, err
	}
	garbage, err := typed[*garbageCollector](ic.GetSingle(plugins.GCPlugin))
	if err != nil {
		return access{}, err
	}
	records := newRecordCopy(recordStores{Containers: c.ContainerService(), Sandboxes: c.SandboxStore()})
	tasks := &monitoredTasks{TasksClient: c.TaskService(), containers: records.Records().Containers, commands: newCommands()}
	if c, err = withRecords(c, records.Records(), tasks, snapshotters); err != nil {
		return access{}, err
	}
	a := access{client: c, records: records, controller: controller, shims: shims, collector: garbage, tasks: tasks}
	for _, s := range snapshotters {
		if cleaner, ok := s.(snapshots.Cleaner); ok {
			a.cleaners = append(a.cleaners, cleaner)
		}
	}
	return a, nil
}

// typed returns a plug-in of a type.
func typed[T any](p any, err error) (T, error) {
	of, ok := p.(T)
	if err == nil && !ok {
		err = fmt.Errorf("plug-in of containerd has the unexpected type %T, want %T", p, of)
	}
	return of, err
}

// withRecords returns a client with other tasks, and stores of containers and sandboxes. containerd has no option to replace one service.
func withRecords(c *client.Client, r recordStores, tasks *monitoredTasks, snapshotters map[string]any) (*client.Client, error) {
	services := map[string]snapshots.Snapshotter{}
	for name := range snapshotters {
		services[name] = c.SnapshotService(name)
	}
	return client.New("", client.WithDefaultNamespace(Namespace), client.WithServices(
		client.WithContainerStore(r.Containers), client.WithSandboxStore(r.Sandboxes), client.WithSnapshotters(services),
		client.WithContentStore(c.ContentStore()), client.WithImageStore(c.ImageService()), client.WithDiffService(c.DiffService()),
		client.WithTaskClient(tasks), client.WithEventService(c.EventService()), client.WithLeasesService(c.LeasesService()),
		client.WithNamespaceService(c.NamespaceService()), client.WithIntrospectionService(c.IntrospectionService()),
		client.WithTransferService(c.TransferService()), client.WithMountManager(c.MountManager()),
	))
}
