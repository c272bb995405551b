package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"david/internal/mysqld"
	"david/internal/netpath"
)

// pathFlags holds the options of david network paths.
type pathFlags struct {
	serverFlags
	clusterFlags
	pod     string
	podPort int
	link    string
	mtu     int
	json    bool
}

func (a *app) networkPathsCommand() *cobra.Command {
	var f pathFlags
	cmd := &cobra.Command{
		Use:   "paths [HOST:PORT]",
		Short: "What the way to a server consists of: links, MTU, tunnels, NAT, and what of it is not as it should be",
		Long: "Look at the way to a server: the route, every link that it takes on this machine, what it carries to each hop (probed with pings that may\n" +
			"not be fragmented), tunnels, NAT, the connection as the kernel sees it. With --dsn david logs in and has 4 MiB sent each way: the links'\n" +
			"own counters then show which of them carried that, and the server says whom it sees. Nothing is changed.\n" +
			"With --pod the server is a pod: what the cluster says of its node, its network and the Services that lead to it is held against what\n" +
			"is seen from here of each way to it, so best from a node or from a machine that reaches the pod network.",
		Args: mostArgs(1, "one HOST:PORT at most"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.networkPaths(cmd.Context(), f, args) },
	}
	fs := cmd.Flags()
	f.serverFlags.add(fs, "the server: user@tcp(host:port)/", "an option file that says where the server is, and the password")
	f.clusterFlags.add(fs)
	fs.StringVar(&f.pod, "pod", "", "the server is a pod: NAMESPACE/NAME; the ways to its address and by the Services that select it")
	fs.IntVar(&f.podPort, "pod-port", 0, "pod: the port that it listens at (default the one that it says is its server's, else 3306)")
	fs.StringVar(&f.link, "interface", "", "a link that the way is expected to take, as eth0")
	fs.IntVar(&f.mtu, "mtu", 0, "bytes that the first link is expected to carry (0: not asked)")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

func (a *app) networkPaths(ctx context.Context, f pathFlags, args []string) error {
	if f.mtu < 0 {
		return usage("--mtu %d: give bytes above 0", f.mtu)
	}
	if f.pod != "" {
		if f.named() || len(args) > 0 {
			return usage("--pod finds the server by itself: leave out HOST:PORT, --dsn and --defaults-file")
		}
		return a.networkPathsToPod(ctx, f)
	}
	if f.kubeconfig != "" || f.context != "" || f.podPort != 0 {
		return usage("--kubeconfig, --context and --pod-port are for a pod: name it with --pod NAMESPACE/NAME")
	}
	loggedIn := f.named()
	if loggedIn == (len(args) == 1) {
		return usage("say which server: HOST:PORT, --dsn or --defaults-file to log in and see more, or --pod NAMESPACE/NAME")
	}
	var v netpath.Visit
	var leave func() error
	var err error
	if loggedIn {
		v, leave, err = a.visitServer(ctx, f.serverFlags)
	} else {
		v, leave, err = visitUnknown(ctx, args[0])
	}
	if err != nil {
		return err
	}
	defer leave()
	v.Interface, v.MTU = f.link, f.mtu
	seen, err := netpath.Inspect(ctx, v)
	if err != nil {
		return err
	}
	if f.json {
		return a.printJSON(seen)
	}
	return printPath(a.out, seen)
}

// visitUnknown connects to a server without logging in.
func visitUnknown(ctx context.Context, text string) (v netpath.Visit, leave func() error, err error) {
	if v.Address, v.Others, err = addressOf(ctx, text); err != nil {
		return v, nil, err
	}
	leave, err = connect(ctx, v.Address)
	return v, leave, err
}

func connect(ctx context.Context, to netip.AddrPort) (leave func() error, err error) {
	conn, err := (&net.Dialer{Timeout: dialPatience}).DialContext(ctx, "tcp", to.String())
	switch {
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EACCES): // the first of a blackhole, the last where a route prohibits it
		return nil, codedError{exitTarget, fmt.Errorf("no route leads there: %w; see: ip route get %s", err, to.Addr())}
	case err != nil:
		return nil, codedError{exitTarget, fmt.Errorf("no server answers there: %w", err)}
	}
	return conn.Close, nil
}

const dialPatience = 10 * time.Second

// addressOf looks a server's name up.
func addressOf(ctx context.Context, text string) (to netip.AddrPort, others []netip.Addr, err error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = strings.Trim(text, "[]"), "3306"
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return to, nil, codedError{exitTarget, fmt.Errorf("cannot find %s: %w", host, err)}
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return to, nil, usage("%s: %w", text, err)
	}
	for i := range list {
		list[i] = list[i].Unmap()
	}
	first, others := ordered(list)
	return netip.AddrPortFrom(first, uint16(number)), others, nil
}

// ordered chooses the address of a name that is looked at, and leaves those that lead there by other networks.
func ordered(list []netip.Addr) (first netip.Addr, others []netip.Addr) {
	slices.SortStableFunc(list, func(a, b netip.Addr) int { return cmp.Compare(a.BitLen(), b.BitLen()) }) // IPv4 first: what is measured most
	for _, ip := range list[1:] {
		if !ip.IsLoopback() { // localhost has two
			others = append(others, ip)
		}
	}
	return list[0], others
}

// visitServer logs in, by the very address that is looked at.
func (a *app) visitServer(ctx context.Context, f serverFlags) (v netpath.Visit, leave func() error, err error) {
	addr, err := a.remoteAddr(f)
	if err != nil {
		return v, nil, err
	}
	if addr.Network != "tcp" {
		return v, nil, usage("a socket is no network path: give a server's TCP address")
	}
	if v.Address, v.Others, err = addressOf(ctx, addr.Address); err != nil {
		return v, nil, err
	}
	addr = addr.At(v.Address.String())
	conn, err := mysqld.Open(ctx, addr)
	if errors.Is(err, mysqld.ErrUnreachable) && mysqld.Number(err) == 0 { // no answer of the server's, as of too many connections
		if leave, lost := connect(ctx, v.Address); lost == nil { // the way is worth a look all the same
			v.Unheard = err
			return v, leave, nil
		}
	}
	if err != nil {
		return v, nil, err
	}
	one, err := conn.Single(ctx)
	if err != nil {
		return v, nil, errors.Join(err, conn.Close())
	}
	leave = func() error { return errors.Join(one.Close(), conn.Close()) }
	if err := v.Ask(ctx, one); err != nil {
		return v, nil, errors.Join(err, leave())
	}
	return v, leave, nil
}

// printPath shows the findings first.
func printPath(out io.Writer, s netpath.Seen) error {
	for _, f := range s.Findings {
		fmt.Fprintf(out, "%s: %s\n", f.What, f.Text)
	}
	if len(s.Findings) == 0 {
		fmt.Fprintln(out, "nothing that is seen of the way is out of the ordinary")
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	row("server", "%s", s.Address)
	row("from", "%s, %s", s.Source, s.Route)
	for _, k := range s.Links {
		row("link", "%s", linkText(k))
	}
	row("verified", "%s", verifiedText(s))
	row("carries", "%s", mtuText(s.MTU))
	for _, h := range s.MTU.Hops {
		row("hop", "%s", hopText(h))
	}
	if t := s.TCP; t != nil {
		row("connection", "%s; segments of %d bytes are sent and of %d received, round trip %.3g ms, %d sent again", s.Congestion, t.SendMSS, t.ReceiveMSS, float64(t.RTT)/1000, t.Retrans)
	} else {
		row("connection", "%s", s.Congestion)
	}
	row("TLS", "%s", cmp.Or(s.TLS, "not known without --dsn"))
	if c := s.Conntrack; c != nil {
		row("conntrack", "%d of %d entries%s", c.Count, c.Max, map[bool]string{true: ", this connection's among them"}[c.Tracked])
	}
	if s.KubeProxy != "" {
		row("kube-proxy", "%s", s.KubeProxy)
	}
	if len(s.Plugins) > 0 {
		row("networks here", "%s", strings.Join(s.Plugins, ", "))
	}
	for _, text := range s.Unseen {
		row("not seen", "%s", text)
	}
	return w.Flush()
}

func linkText(k netpath.Link) string {
	text := fmt.Sprintf("%s: %s", k.Name, k.Kind)
	if k.Driver != "" && k.Driver != k.Kind {
		text += " (" + k.Driver + ")"
	}
	text += fmt.Sprintf(", MTU %d", k.MTU)
	if k.Rate > 0 {
		text += ", " + netpath.RateText(k.Rate) + "/s"
	}
	if len(k.Offloads) > 0 {
		text += ", " + strings.Join(k.Offloads, " ")
	}
	if t := k.Tunnel; t != nil {
		text += fmt.Sprintf("; id %d, port %d, to %s, %d bytes of a packet are its own", t.ID, t.Port, cmp.Or(t.Remote, "several ends"), t.Overhead)
	}
	if k.XDP {
		text += "; an eBPF program is attached (XDP)"
	}
	if k.Elsewhere {
		text += "; it goes on in another network namespace"
	}
	return text
}

func hopText(h netpath.Hop) string {
	text := fmt.Sprintf("%d: %s", h.Number, cmp.Or(h.Address, "nobody answers"))
	if h.End {
		text += ", the server"
	}
	switch {
	case h.Address == "":
		return text
	case h.MTU == 0:
		return text + ", how large a packet gets there is not known: it does not answer often enough"
	case h.Either:
		return text + fmt.Sprintf(", packets of up to %d bytes get there and their answers back", h.MTU)
	case h.Back > 0:
		return text + fmt.Sprintf(", packets of up to %d bytes get there, answers of up to %d come back", h.MTU, h.Back)
	}
	return text + fmt.Sprintf(", packets of up to %d bytes get there", h.MTU)
}

func verifiedText(s netpath.Seen) string {
	switch {
	case s.Verified:
		return fmt.Sprintf("these links counted %d MiB each way", netpath.Bytes>>20)
	case s.TLS == "":
		return "no: --dsn has data sent, which the links count"
	}
	return fmt.Sprintf("no: of %d MiB sent each way, some of these links counted less", netpath.Bytes>>20)
}

func mtuText(m netpath.MTU) string {
	if m.Carried == 0 {
		return fmt.Sprintf("not known of packets up to %d bytes: %s", m.Sent, m.Why)
	}
	return fmt.Sprintf("packets of up to %d bytes, of %d that leave here", m.Carried, m.Sent)
}
