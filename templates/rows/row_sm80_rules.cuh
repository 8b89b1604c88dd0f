// Rules, launch and estimates of row_sm80: which configs are legal for which problem, how a kernel is launched, and what the analytic
// model counts. Part of rows/row_sm80.cuh, which defines Config before it includes this file.
// Contract: a RULE that is false refuses the config by its name (docs/adding-a-template.md). SPDX-License-Identifier: Apache-2.0

// ---- Rules on the config ------------------------------------------------------------------------------------------------------

RULE("arch_has_clusters", "clusters need sm_90")
__host__ __device__ constexpr bool arch_has_clusters() { return Config::CLUSTER == 1 || DeviceLimits::arch >= 90; }

RULE("threads_fit", "a CTA has 64 to 1024 threads")
__host__ __device__ constexpr bool threads_fit() { return Config::kThreads >= 64 && Config::kThreads <= 1024; }

RULE("vectors_are_narrow", "a vector is at most 16 bytes of every tensor on average")
__host__ __device__ constexpr bool vectors_are_narrow() { return Config::VEC * sizeof(Config::Accumulator) <= 32; }

RULE("registers_fit", "a thread's vectors fit its registers")
__host__ __device__ constexpr bool registers_fit() {
  return Config::kRegisters <= 168 &&
         Config::kRegisters * Config::kThreads * (Config::CTAS_PER_SM > 0 ? Config::CTAS_PER_SM : 1) <= DeviceLimits::registers_per_sm;
}

RULE("columns_can_wait", "what all rows share is there, and could be loaded after the row")
__host__ __device__ constexpr bool columns_can_wait() {
  return !Config::COLUMNS_FIRST || (!Config::kNeedsColumnsFirst && Config::BYTES_PER_COLUMN > Config::ROW_BYTES_PER_COLUMN);
}

RULE("persistent_ctas_fit", "persistent CTAs have at most 2048 threads an SM")
__host__ __device__ constexpr bool persistent_ctas_fit() { return Config::CTAS_PER_SM * Config::kThreads <= 2048; }

RULE("persistent_rows_are_whole", "a persistent CTA holds its rows by itself")
__host__ __device__ constexpr bool persistent_rows_are_whole() {
  return Config::CTAS_PER_SM == 0 || (Config::CLUSTER == 1 && !Config::IS_STREAMED);
}

RULE("cap_is_needed", "a cap of registers is for threads that hold many elements, of CTAs that are not persistent")
__host__ __device__ constexpr bool cap_is_needed() {
  return Config::MAX_REGISTERS == 0 || (Config::VEC * Config::ITEMS >= 32 && Config::CTAS_PER_SM == 0);
}

RULE("clusters_reduce", "a cluster shares one long row that it reduces")
__host__ __device__ constexpr bool clusters_reduce() {
  return Config::CLUSTER == 1 ||
         (Config::PHASES > 0 && Config::ROWS == 1 && Config::THREADS >= 256 && !Config::IS_STREAMED && sizeof(Config::Accumulator) == 4);
}

RULE("streams_reduce", "without reductions a row is read once anyway")
__host__ __device__ constexpr bool streams_reduce() { return !Config::IS_STREAMED || Config::PHASES > 0; }

RULE("known_rows_are_whole", "a row of known length is whole vectors")
__host__ __device__ constexpr bool known_rows_are_whole() { return Config::EXTENT_N % Config::VEC == 0; }

// ---- Rules on the problem -------------------------------------------------------------------------------------------------------

RULE("row_fits", "a row that is reduced fits the registers of the threads that share it")
__host__ __device__ constexpr bool row_fits(long long extent_n) {
  return Config::PHASES == 0 || Config::IS_STREAMED || Config::kColumns * Config::CLUSTER >= extent_n;
}

RULE("products_are_thin", "a product of matrices is made row by row only where one of them has few rows: the other is read again for each")
__host__ __device__ constexpr bool products_are_thin(long long extent_shared) { return extent_shared <= 8; }

RULE("extents_fit", "no extent is above 2^40")
__host__ __device__ constexpr bool extents_fit(long long extent_m, long long extent_n) {
  return extent_m <= 1099511627776 && extent_n <= 1099511627776;
}

RULE("positions_are_exact", "argmax and count hold positions of a row as f32, which is exact for 2^24 of them")
__host__ __device__ constexpr bool positions_are_exact(long long extent_n) {
  return Config::COUNTS_COLUMNS && sizeof(Config::Accumulator) == 4 ? extent_n <= 16777216 : true;
}

RULE("length_is_known", "a kernel for rows of one length takes no others, and all of its tensors are aligned to 16 bytes")
__host__ __device__ constexpr bool length_is_known(long long extent_m, long long extent_n, long long misalignment) {
  return Config::EXTENT_N == 0 || (Config::EXTENT_N == extent_n && misalignment == 0 && extent_m <= 65535ll * Config::ROWS);
}

// ---- Launch ---------------------------------------------------------------------------------------------------------------------

/// CTAs side by side along a row: of a cluster, or parts of a row that is not reduced.
__host__ __device__ constexpr long long ctas_per_row(long long extent_n) {
  return Config::PHASES > 0 ? Config::CLUSTER : extent_n <= Config::kColumns ? 1 : (extent_n + Config::kColumns - 1) / Config::kColumns;
}

__host__ __device__ constexpr long long row_groups(long long extent_m) { return (extent_m + Config::ROWS - 1) / Config::ROWS; }

/// Row groups that are under work at once.
__host__ __device__ constexpr long long groups_at_once(long long extent_m, long long extent_n) {
  return Config::CTAS_PER_SM == 0 || row_groups(extent_m) * ctas_per_row(extent_n) <= DeviceLimits::num_sms * Config::CTAS_PER_SM
             ? row_groups(extent_m)
         : DeviceLimits::num_sms * Config::CTAS_PER_SM <= ctas_per_row(extent_n)
             ? 1
             : DeviceLimits::num_sms * Config::CTAS_PER_SM / ctas_per_row(extent_n);
}

/// A row's CTAs are neighbours along x. Row groups along y, at most 65535 (CUDA Programming Guide, compute capabilities), and along z:
/// coordinates that need no division.
LAUNCH("grid_x") __host__ __device__ constexpr long long grid_x(long long extent_n) { return ctas_per_row(extent_n); }
LAUNCH("grid_z")
__host__ __device__ constexpr long long grid_z(long long extent_m, long long extent_n) {
  return (groups_at_once(extent_m, extent_n) + 65534) / 65535;
}
LAUNCH("grid_y")
__host__ __device__ constexpr long long grid_y(long long extent_m, long long extent_n) {
  return grid_z(extent_m, extent_n) > 1 ? (groups_at_once(extent_m, extent_n) + grid_z(extent_m, extent_n) - 1) / grid_z(extent_m, extent_n)
                                        : groups_at_once(extent_m, extent_n);
}
LAUNCH("block_x") __host__ __device__ constexpr long long block_x() { return Config::kThreads; }
LAUNCH("cluster_x") __host__ __device__ constexpr long long cluster_x() { return Config::CLUSTER; }

RULE("grid_fits", "a row has at most 2^31 - 1 CTAs, and there are at most 65535 * 65535 groups of rows")
__host__ __device__ constexpr bool grid_fits(long long extent_m, long long extent_n) {
  return grid_x(extent_n) <= 2147483647 && grid_z(extent_m, extent_n) <= 65535;
}

// ---- Estimates for the analytic model: docs/adding-a-template.md --------------------------------------------------------------

ESTIMATE("threads_per_cta") __host__ __device__ constexpr long long threads_per_cta() { return Config::kThreads; }
ESTIMATE("smem_bytes_per_cta") __host__ __device__ constexpr long long smem_bytes_per_cta() { return 1024; }
/// A row that is reduced stays unpacked between its phases; persistent CTAs get what their number leaves them.
__host__ __device__ constexpr long long wanted_registers() {
  return Config::kRegisters + (Config::PHASES > 0 ? Config::VEC * Config::ITEMS / 4 : 0);
}
__host__ __device__ constexpr long long registers_left() {
  return Config::CTAS_PER_SM > 0 ? DeviceLimits::registers_per_sm / (Config::CTAS_PER_SM * Config::kThreads) : 255;
}
ESTIMATE("registers_per_thread") __host__ __device__ constexpr long long registers_per_thread() {
  return wanted_registers() < registers_left() ? wanted_registers() : registers_left();
}
ESTIMATE("is_tensor_core") __host__ __device__ constexpr long long is_tensor_core() { return 0; }
ESTIMATE("math_type_bytes") __host__ __device__ constexpr long long math_type_bytes() { return 4; }
ESTIMATE("tile_m") __host__ __device__ constexpr long long tile_m() { return Config::ROWS; }
ESTIMATE("tile_n") __host__ __device__ constexpr long long tile_n() { return Config::kColumns; }
/// Clusters leave SMs of a GPC without a place (H200).
ESTIMATE("resident_ctas") __host__ __device__ constexpr long long resident_ctas() {
  return Config::CLUSTER < 4   ? DeviceLimits::num_sms
         : Config::CLUSTER < 8 ? DeviceLimits::num_sms * 10 / 11
                               : DeviceLimits::num_sms * 5 / 6;
}
ESTIMATE("ctas")
__host__ __device__ constexpr long long ctas(long long extent_m, long long extent_n) {
  return groups_at_once(extent_m, extent_n) * ctas_per_row(extent_n);
}
__host__ __device__ constexpr long long groups_per_cta(long long extent_m, long long extent_n) {
  return (row_groups(extent_m) + groups_at_once(extent_m, extent_n) - 1) / groups_at_once(extent_m, extent_n);
}
/// Parts of a row that a CTA loads in turn, and how often it does: every phase of a streamed row reads it again, and what is stored.
__host__ __device__ constexpr long long loads_per_row(long long extent_n) {
  return Config::IS_STREAMED
             ? (Config::PHASES + (Config::STORES_ALONG_ROWS ? 1 : 0)) * ((extent_n + Config::kColumns - 1) / Config::kColumns)
             : 1;
}
ESTIMATE("k_steps") __host__ __device__ constexpr long long k_steps(long long extent_m, long long extent_n) {
  return groups_per_cta(extent_m, extent_n) * loads_per_row(extent_n);
}
ESTIMATE("math_flops_per_cta")
__host__ __device__ constexpr long long math_flops_per_cta(long long extent_m, long long extent_n) {
  return Config::ROWS * Config::kColumns * k_steps(extent_m, extent_n) * 8ll * (Config::PHASES + 1);
}
ESTIMATE("gmem_bytes_per_cta")
__host__ __device__ constexpr long long gmem_bytes_per_cta(long long extent_m, long long extent_n) {
  return Config::ROWS * (extent_n < Config::kColumns ? extent_n : Config::kColumns) * k_steps(extent_m, extent_n) *
             Config::ROW_BYTES_PER_COLUMN +
         Config::kColumns * (Config::BYTES_PER_COLUMN - Config::ROW_BYTES_PER_COLUMN) *
             (Config::CTAS_PER_SM > 0 ? 1 : Config::ROWS * loads_per_row(extent_n));
}
/// From the request of a row, or a part of it, to its last byte; an H200 under load.
__host__ __device__ constexpr long long load_clocks() { return 1000 + Config::ROWS * Config::kColumns * Config::kBytesPerColumn / 39; }
/// Between that and the last store: what a warp does for each element, one barrier a phase. A cluster starts together, and waits for its
/// slowest CTA at each.
__host__ __device__ constexpr long long process_clocks() {
  return Config::ROWS * Config::kColumns * (6ll * Config::PHASES + 10) / 128 + Config::PHASES * (Config::kWarpsPerRow > 1 ? 250 : 150) +
         (Config::CLUSTER > 1 ? 2500 + Config::PHASES * 1200 : 0);
}
ESTIMATE("lifetime_clocks_per_cta")
__host__ __device__ constexpr long long lifetime_clocks_per_cta(long long extent_m, long long extent_n) {
  return 600 + (Config::CTAS_PER_SM == 0           ? load_clocks() * loads_per_row(extent_n) + process_clocks()
                : load_clocks() > process_clocks() ? load_clocks() * 5 / 4 * (groups_per_cta(extent_m, extent_n) + 1)
                                                   : load_clocks() + process_clocks() * groups_per_cta(extent_m, extent_n));
}
// What another legal config does as well or better (H200, bench/results):

/// A length that could be known is not.
__host__ __device__ constexpr bool hides_length(long long extent_m, long long extent_n, long long misalignment) {
  return Config::EXTENT_N == 0 && extent_n > 0 && extent_n % Config::VEC == 0 && misalignment == 0 && extent_m <= 65535ll * Config::ROWS;
}
/// Threads, or whole vectors of all of them, hold nothing of a row, and wait for the others.
__host__ __device__ constexpr bool holds_nothing(long long extent_n) {
  return Config::PHASES > 0 && !Config::IS_STREAMED && extent_n > 0 &&
         ((Config::kColumns * Config::CLUSTER >= 2 * extent_n && Config::THREADS * Config::VEC > 8) ||
          Config::THREADS * Config::VEC * (Config::ITEMS - 1) * Config::CLUSTER >= extent_n);
}
/// A cap pays where values are converted again in several phases (LayerNorm; softmax makes its exponentials twice then).
__host__ __device__ constexpr bool caps_for_nothing() {
  return Config::MAX_REGISTERS > 0 && (Config::PHASES < 2 || Config::kRegisters > 56);
}
/// Persistent CTAs win where a barrier joins many warps; one or two warps find their successor as fast.
__host__ __device__ constexpr bool persists_for_nothing(long long extent_m) {
  return Config::PHASES > 0 && Config::CTAS_PER_SM > 0 && Config::kWarpsPerRow <= 2 && row_groups(extent_m) > 16 * DeviceLimits::num_sms;
}
/// More rows than make a CTA of two warps only bind those together.
__host__ __device__ constexpr bool binds_rows(long long extent_n) {
  return Config::ROWS > 1 &&
         ((Config::kThreads >= 128 && Config::kColumns * Config::CLUSTER > 1024) || (Config::PHASES == 0 && extent_n > Config::kColumns));
}
/// Narrow accesses are more of them; a thread waits too long for more than 128 bytes.
__host__ __device__ constexpr bool has_poor_accesses(long long extent_n) {
  return (Config::VEC < 4 && extent_n % 4 == 0) ||
         (Config::PHASES > 0 && Config::VEC * Config::ROW_BYTES_PER_COLUMN < 16 && extent_n % 8 == 0) ||
         (Config::VEC * Config::ITEMS * Config::ROW_BYTES_PER_COLUMN > 128 && extent_n < 32768);
}
/// Registers that are not there are spilled; hints gain nothing where rows are all that is read.
ESTIMATE("is_dominated")
__host__ __device__ constexpr long long is_dominated(long long extent_m, long long extent_n, long long misalignment) {
  return hides_length(extent_m, extent_n, misalignment) || holds_nothing(extent_n) || caps_for_nothing() ||
         persists_for_nothing(extent_m) || binds_rows(extent_n) || has_poor_accesses(extent_n) || wanted_registers() > registers_left() ||
         Config::HAS_HINTS;
}
