package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"github.com/containerd/containerd/v2/client"
	shimmanager "github.com/containerd/containerd/v2/core/runtime/v2"
	"github.com/containerd/containerd/v2/core/sandbox"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/log"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
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

// plugInSet has containerd's plug-ins, initialized in the order of what they require. containerd's own server does that too, but brings
// its configuration file, its cgroup with the library for eBPF, and clients of proxies, which make the program 1 MB larger.
type plugInSet struct {
	*plugin.Set
	servers []server
}

// server is a plug-in that listens.
type server interface {
	Start(ctx context.Context) error
}

// loading serializes starts of containerd: its registry and the configurations in it are global to the process.
var loading struct {
	sync.Mutex
	registered bool
}

// load initializes the plug-ins and returns what the engine uses of them. A plug-in that fails is only logged: the native snapshotter works
// where overlayfs does not. The plug-ins are returned with an error too.
func (e *Engine) load(ctx context.Context) (plugInSet, access, error) {
	loading.Lock()
	defer loading.Unlock()
	if !loading.registered {
		registerCollector()
		registerMounts()
		loading.registered = true
	}
	set := plugInSet{Set: plugin.NewPluginSet()}
	for _, r := range registry.Graph(func(*plugin.Registration) bool { return false }) {
		p := r.Init(e.plugInContext(ctx, set.Set, r))
		if err := set.Add(p); err != nil {
			return set, access{}, err
		}
		instance, err := p.Instance()
		if err != nil && !plugin.IsSkipPlugin(err) {
			log.G(ctx).WithError(err).Warnf("failed to load plug-in %s", r.URI())
		}
		if s, ok := instance.(server); ok && r.Type == plugins.ServerPlugin {
			set.servers = append(set.servers, s)
		}
	}
	if len(set.servers) == 0 {
		return set, access{}, errors.New("containerd's server for shims is not loaded")
	}
	found, err := newAccess(plugin.NewContext(ctx, set.Set, nil))
	return set, found, err
}

// plugInContext has the directories and the configuration of a plug-in.
func (e *Engine) plugInContext(ctx context.Context, set *plugin.Set, r plugin.Registration) *plugin.InitContext {
	ic := plugin.NewContext(ctx, set, map[string]string{
		plugins.PropertyRootDir:      filepath.Join(e.opt.Root, r.URI()),
		plugins.PropertyStateDir:     filepath.Join(e.opt.State, r.URI()),
		plugins.PropertyGRPCAddress:  e.grpcAddress(), // nothing listens; shims derive the names of their sockets from it
		plugins.PropertyTTRPCAddress: e.ttrpcAddress(),
	})
	switch c := r.Config.(type) {
	case interface{ SetAddress(path string) }: // the ttrpc server
		c.SetAddress(e.ttrpcAddress())
	case *shimmanager.ShimConfig:
		c.SocketDir = e.socketDir()
	}
	ic.Config = r.Config
	return ic
}

// start starts the servers.
func (s plugInSet) start(ctx context.Context) error {
	for _, server := range s.servers {
		if err := server.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// close closes the plug-ins, the last one first.
func (s plugInSet) close() error {
	var errs []error
	for _, p := range slices.Backward(s.GetAll()) {
		instance, _ := p.Instance() // nil if it failed
		if c, ok := instance.(io.Closer); ok {
			if err := c.Close(); err != nil {
				errs = append(errs, fmt.Errorf("close %s: %w", p.Registration.URI(), err))
			}
		}
	}
	return errors.Join(errs...)
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
