// The same in Rust: what vector_add.h and tl.h declare, as far as it is used here.
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::ptr::null_mut;

#[repr(C)]
struct Config {
    grid: [u32; 3],
    num_warps: c_int,
    num_stages: c_int,
    group_pids: c_int,
    debug: bool,
    stream: *mut c_void,
    max_ctas: c_int,
    grid_dims: c_int,
    launch_cooperative_grid: bool,
    launch_pdl: bool,
    specialization: c_int,
    maxnreg: c_int,
    ftz: c_int,
    wraps: c_int,
    fp_fusion: c_int,
    abi: c_int,
    reserved: [u64; 1],
}

// tl_config of tl.h: the library reads all of it
const _: () = assert!(std::mem::size_of::<Config>() == 88);

type Context = c_void;
type Buffer = c_void;
type Compiled = c_void;

extern "C" {
    fn tl_error(ctx: *const Context) -> *const c_char;
    fn tl_context_create(device: *const c_char, out: *mut *mut Context) -> c_int;
    fn tl_context_destroy(ctx: *mut Context);
    fn tl_buffer_create(ctx: *mut Context, bytes: usize, out: *mut *mut Buffer) -> c_int;
    fn tl_buffer_ptr(b: *const Buffer) -> *mut c_void;
    fn tl_buffer_write(b: *mut Buffer, offset: usize, src: *const c_void, bytes: usize) -> c_int;
    fn tl_buffer_read(b: *mut Buffer, offset: usize, dst: *mut c_void, bytes: usize) -> c_int;
    fn add_kernel_load(ctx: *mut Context, out: *mut *mut Compiled) -> c_int;
    fn add_kernel(
        kernel: *mut Compiled,
        cfg: *const Config,
        x: *mut f32,
        y: *mut f32,
        out: *mut f32,
        n: i32,
    ) -> c_int;
}

const N: usize = 3000;
const BLOCK: usize = 1024;

fn check(status: c_int) -> Result<(), String> {
    match status {
        0 => Ok(()),
        _ => Err(unsafe { CStr::from_ptr(tl_error(null_mut())) }.to_string_lossy().into_owned()),
    }
}

unsafe fn upload(ctx: *mut Context, data: &[f32]) -> Result<*mut Buffer, String> {
    let (mut b, bytes) = (null_mut(), std::mem::size_of_val(data));
    check(tl_buffer_create(ctx, bytes, &mut b))?;
    check(tl_buffer_write(b, 0, data.as_ptr().cast(), bytes))?;
    Ok(b)
}

unsafe fn run(ctx: *mut Context) -> Result<usize, String> {
    let mut add = null_mut();
    check(add_kernel_load(ctx, &mut add))?;
    let mut sum = vec![0f32; N];
    let (x, y, out) = (upload(ctx, &vec![2.0; N])?, upload(ctx, &vec![0.5; N])?, upload(ctx, &sum)?);
    let cfg = Config {
        grid: [((N + BLOCK - 1) / BLOCK) as u32, 0, 0],
        num_warps: 0,
        num_stages: 0,
        group_pids: 0,
        debug: false,
        stream: null_mut(),
        max_ctas: 0,
        grid_dims: 1,
        launch_cooperative_grid: false,
        launch_pdl: false,
        specialization: 0,
        maxnreg: 0,
        ftz: 0,
        wraps: 0,
        fp_fusion: 0,
        abi: 0,
        reserved: [0; 1],
    };
    let at = |b| tl_buffer_ptr(b).cast();
    check(add_kernel(add, &cfg, at(x), at(y), at(out), N as i32))?;
    check(tl_buffer_read(out, 0, sum.as_mut_ptr().cast(), N * 4))?;
    Ok(sum.iter().filter(|&&s| s != 2.5).count())
}

fn main() -> Result<(), String> {
    let mut ctx = null_mut();
    let device = std::env::args().nth(1).unwrap_or("cuda".into());
    let device = CString::new(device).map_err(|e| e.to_string())?;
    check(unsafe { tl_context_create(device.as_ptr(), &mut ctx) })?;
    let wrong = unsafe { run(ctx) };
    unsafe { tl_context_destroy(ctx) };
    println!("{} of {N} sums are wrong", wrong.clone()?);
    if wrong? == 0 { Ok(()) } else { Err("wrong sums".into()) }
}
