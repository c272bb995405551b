package main

import (
	"context"
	"errors"
	"io/fs"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// driver answers the sidecars and kubelet, one at a time.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	mu   sync.Mutex
	pool pool
	node string
}

// GetPluginInfo says who it is.
func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: "1"}, nil
}

// GetPluginCapabilities says that it makes volumes.
func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	service := &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{Type: &csi.PluginCapability_Service_{Service: service}}}}, nil
}

// Probe says that it works.
func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// ControllerGetCapabilities says what it can do with volumes.
func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	var all []*csi.ControllerServiceCapability
	for _, what := range []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT, csi.ControllerServiceCapability_RPC_CLONE_VOLUME} {
		all = append(all, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: what}}})
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: all}, nil
}

// ValidateVolumeCapabilities takes whatever a volume of files can be.
func (d *driver) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if err := files(r.VolumeCapabilities...); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: r.VolumeCapabilities}}, nil
}

// files refuses volumes that are no filesystem.
func files(all ...*csi.VolumeCapability) error {
	for _, c := range all {
		if c.GetMount() == nil {
			return status.Error(codes.InvalidArgument, "only volumes with a filesystem are made")
		}
	}
	return nil
}

// CreateVolume makes an empty volume, or one of a snapshot or of another volume as it is.
func (d *driver) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := files(r.VolumeCapabilities...); err != nil {
		return nil, err
	}
	size := max(r.GetCapacityRange().GetRequiredBytes(), smallest)
	from := ""
	switch s := r.GetVolumeContentSource(); {
	case s.GetSnapshot() != nil:
		from = d.pool.snapshot(s.GetSnapshot().SnapshotId)
	case s.GetVolume() != nil:
		from = d.pool.volume(s.GetVolume().VolumeId)
	}
	size, err := d.pool.create(r.Name, from, size)
	if err != nil {
		return nil, coded(err)
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: r.Name, CapacityBytes: size, ContentSource: r.VolumeContentSource}}, nil
}

// DeleteVolume removes a volume.
func (d *driver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &csi.DeleteVolumeResponse{}, coded(d.pool.remove(d.pool.volume(r.VolumeId)))
}

// CreateSnapshot clones a volume's file, in use or not.
func (d *driver) CreateSnapshot(_ context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := d.pool.take(r.Name, r.SourceVolumeId)
	if err != nil {
		return nil, coded(err)
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{SnapshotId: r.Name, SourceVolumeId: r.SourceVolumeId, SizeBytes: info.Size(),
		CreationTime: timestamppb.New(info.ModTime()), ReadyToUse: true}}, nil
}

// DeleteSnapshot removes a snapshot; volumes that were made of it stay.
func (d *driver) DeleteSnapshot(_ context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &csi.DeleteSnapshotResponse{}, coded(d.pool.remove(d.pool.snapshot(r.SnapshotId)))
}

// NodeGetInfo names the node.
func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

// NodeGetCapabilities says that a volume is mounted once, and then shown where pods have it.
func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	stage := &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{{Type: &csi.NodeServiceCapability_Rpc{Rpc: stage}}}}, nil
}

// NodeStageVolume mounts a volume.
func (d *driver) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := files(r.VolumeCapability); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, coded(d.pool.mount(r.VolumeId, r.StagingTargetPath))
}

// NodeUnstageVolume unmounts it.
func (d *driver) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &csi.NodeUnstageVolumeResponse{}, coded(unmount(r.StagingTargetPath))
}

// NodePublishVolume shows a mounted volume where a pod has it.
func (d *driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &csi.NodePublishVolumeResponse{}, coded(show(r.StagingTargetPath, r.TargetPath, r.Readonly))
}

// NodeUnpublishVolume takes it away there.
func (d *driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &csi.NodeUnpublishVolumeResponse{}, coded(hide(r.TargetPath))
}

// coded gives an error the code that a sidecar acts on.
func coded(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return status.Error(codes.NotFound, err.Error())
	case errors.Is(err, errName):
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}
