@group(0) @binding(0) var<storage, read_write> memory: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) place: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = place.x; i < arrayLength(&memory); i += groups.x * 256u) {
        var x = i * 0x9e3779b9u + 0x7f4a7c15u;
        x = (x ^ (x >> 16u)) * 0x85ebca6bu;
        x = (x ^ (x >> 13u)) * 0xc2b2ae35u;
        x = x ^ (x >> 16u);
        memory[i] = (x & KEEPu) | SETu;
    }
}
