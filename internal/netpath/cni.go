package netpath

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/version"
	"golang.org/x/sys/unix"

	"david/internal/result"
)

const (
	// pluginSuffix makes a kind of path of a CNI plugin's name.
	pluginSuffix = "-cni"
	// addresses is the plugin that gives a pod those it is told to, and keeps no files.
	addresses = "static"
	// cniVersion is of the configuration: what Debian 12's plugins read.
	cniVersion = "1.0.0"
	// pluginLimit is time that no plugin takes.
	pluginLimit = time.Minute
)

// PluginFolders are where CNI plugins are: a cluster's, and those of Debian's package.
func PluginFolders() []string { return []string{"/opt/cni/bin", "/usr/lib/cni"} }

// pluginOf names the plugin that a path's pods have their links from; it is empty for most.
func pluginOf(p result.Path) string {
	name, of := strings.CutSuffix(p.Kind, pluginSuffix)
	if !of {
		return ""
	}
	return name
}

// Available refuses a path whose CNI plugin is in none of the folders.
func Available(p result.Path, folders []string) error {
	if pluginOf(p) == "" {
		return nil
	}
	for _, name := range []string{pluginOf(p), addresses} {
		if _, err := invoke.FindInPath(name, folders); err != nil {
			return fmt.Errorf("%w: %s is unavailable: there is no CNI plugin %s in %s; Debian's package containernetworking-plugins has it", ErrInput, p.Kind, name, strings.Join(folders, ", "))
		}
	}
	return nil
}

// cni runs CNI plugins as a cluster's container runtime does.
type cni struct {
	lib   *libcni.CNIConfig
	notes *os.File // libcni's
	given []given
}

// given is a link that a plugin gave to a pod.
type given struct {
	node    *Namespace
	network *libcni.NetworkConfigList
	pod     *libcni.RuntimeConf
}

func newCNI(folders []string) (*cni, error) {
	notes, err := nowhere()
	if err != nil {
		return nil, fmt.Errorf("cannot run CNI plugins, whose library keeps notes in a folder (that takes Linux 5.2 or newer): %w", err)
	}
	run := &invoke.DefaultExec{RawExec: &invoke.RawExec{}, PluginDecoder: version.PluginDecoder{}}
	return &cni{lib: libcni.NewCNIConfigWithCacheDir(folders, fmt.Sprintf("/proc/self/fd/%d", notes.Fd()), run), notes: notes}, nil
}

// nowhere makes a folder in memory that no path leads to, so that it is gone when david is.
func nowhere() (*os.File, error) {
	system, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(system)
	if err := unix.FsconfigCreate(system); err != nil {
		return nil, err
	}
	fd, err := unix.Fsmount(system, unix.FSMOUNT_CLOEXEC, 0)
	return os.NewFile(uintptr(fd), "tmpfs"), err
}

// give has a plugin, which runs on a node, give a pod its link.
func (c *cni) give(name string, config map[string]any, node, pod *Namespace) error {
	text, err := json.Marshal(map[string]any{"cniVersion": cniVersion, "name": "david-" + name, "plugins": []any{config}})
	if err != nil {
		return err
	}
	network, err := libcni.NetworkConfFromBytes(text)
	if err != nil {
		return err
	}
	g := given{node, network, &libcni.RuntimeConf{ContainerID: name, NetNS: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), pod.fd), IfName: name}}
	ctx, cancel := context.WithTimeout(context.Background(), pluginLimit)
	defer cancel()
	err = node.Do(func() error {
		_, err := c.lib.AddNetworkList(ctx, network, g.pod)
		return err
	})
	if err == nil {
		c.given = append(c.given, g)
	}
	return err
}

// close has the plugins take back what they gave.
func (c *cni) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), pluginLimit)
	defer cancel()
	for _, g := range slices.Backward(c.given) {
		err = errors.Join(err, g.node.Do(func() error { return c.lib.DelNetworkList(ctx, g.network, g.pod) }))
	}
	return errors.Join(err, c.notes.Close())
}

// plugged has a CNI plugin give each pod its link: a bridge's or a veth pair's other end is on the node, which then routes; a macvlan
// and a device of the node's are in the wire's own network.
func (b builder) plugged() error {
	cn, sn, err := b.nodes(false)
	if err != nil {
		return err
	}
	if k := b.path.Kind; k == MacvlanCNI || k == HostDeviceCNI {
		err := errors.Join(b.plug(cn, b.net.Client, b.inWire(clientHost)), b.plug(sn, b.net.Server, b.inWire(serverHost)))
		if err == nil && k == HostDeviceCNI { // a device that is moved loses its bucket
			err = errors.Join(b.limit(b.net.Client, b.name), b.limit(b.net.Server, b.name))
		}
		return err
	}
	return errors.Join(
		b.number(cn, wire, wireClientNode, partBits), b.number(sn, wire, wireServerNode, partBits),
		b.plug(cn, b.net.Client, b.behind(clientHost, clientGateway, serverHost)), b.plug(sn, b.net.Server, b.behind(serverHost, serverGateway, clientHost)),
		b.route(cn, serverHost, wireServerNode), b.route(sn, clientHost, wireClientNode))
}

// plug has the path's plugin give a pod its link and an address.
func (b builder) plug(node, pod *Namespace, ipam map[string]any) error {
	config := map[string]any{"type": pluginOf(b.path), "mtu": mtu(b.path), "ipam": ipam}
	switch b.path.Kind {
	case BridgeCNI:
		config["bridge"], config["isGateway"] = bridge, true
	case MacvlanCNI:
		config["master"], config["mode"] = wire, "bridge"
	case HostDeviceCNI:
		config["device"] = wire
	}
	return b.net.cni.give(b.name, config, node, pod)
}

// inWire is the address of a pod that is in the wire's network.
func (b builder) inWire(host byte) map[string]any {
	return map[string]any{"type": addresses, "addresses": []any{map[string]any{"address": fmt.Sprintf("%s/%d", b.address(host), wholeBits)}}}
}

// behind is the address of a pod behind its node, and its ways to the other pod and to the nodes.
func (b builder) behind(host, gateway, other byte) map[string]any {
	at := b.address(gateway).String()
	var routes []any
	for _, to := range []byte{other, wireClientNode} {
		routes = append(routes, map[string]any{"dst": b.part(to).String(), "gw": at})
	}
	return map[string]any{"type": addresses, "routes": routes, "addresses": []any{map[string]any{"address": fmt.Sprintf("%s/%d", b.address(host), partBits), "gateway": at}}}
}
